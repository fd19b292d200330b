package hub

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peerUser returns the effective user id of the process at the other end, as it
// was when it connected or began to listen.
func peerUser(raw syscall.RawConn) (int, error) {
	var peer *unix.Ucred
	var err error
	if closed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); closed != nil {
		return 0, closed
	}
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
