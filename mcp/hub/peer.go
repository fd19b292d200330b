package hub

import (
	"fmt"
	"net"
	"os"
)

// ForeignError tells that the process at the other end of a socket belongs to
// another user.
type ForeignError struct{ UID int }

// Error names the user.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the process at the other end of the hub's socket belongs to another user (uid %d)", e.UID)
}

// checkPeer refuses a peer that is not of the user uid.
func checkPeer(conn *net.UnixConn, uid int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("ask who is at the other end of the hub's socket: %w", err)
	}
	peer, err := peerUser(raw)
	if err != nil {
		return fmt.Errorf("ask who is at the other end of the hub's socket: %w", err)
	}
	if peer != uid {
		return &ForeignError{UID: peer}
	}
	return nil
}

// self is the user of this process.
func self() int { return os.Geteuid() }
