package hub

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peerUser returns the effective user id of the process at the other end, as it
// was when it connected or began to listen.
func peerUser(raw syscall.RawConn) (int, error) {
	var peer *unix.Xucred
	var err error
	if closed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); closed != nil {
		return 0, closed
	}
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
