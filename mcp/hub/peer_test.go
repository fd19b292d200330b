//go:build linux || darwin

package hub

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
)

// pair is a socket's two ends.
func pair(t *testing.T, dial func(path string) (*net.UnixConn, error)) (near, far *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := listenAt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = dial(path); err != nil {
		t.Fatal(err)
	}
	if far, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

// TestPeer knows who is at the other end, on both ends.
func TestPeer(t *testing.T) {
	near, far := pair(t, func(path string) (*net.UnixConn, error) { return connect(t.Context(), path) })
	for name, conn := range map[string]*net.UnixConn{"instance": near, "hub": far} {
		if err := checkPeer(conn, self()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var foreign *ForeignError
		if err := checkPeer(conn, self()+1); !errors.As(err, &foreign) || foreign.UID != self() {
			t.Errorf("%s, for another user: %v", name, err)
		}
	}
}
