package hub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/store"
)

// stranger is the id of a user that nobody is.
const stranger = 54321

// asStranger runs a function as another user, where this test may do that; it
// reports whether it could.
func asStranger(t *testing.T, do func() error) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	var thread sync.WaitGroup
	var err error
	thread.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, no := syscall.RawSyscall(syscall.SYS_SETRESUID, stranger, stranger, stranger); no != 0 {
			err = no
			return
		}
		err = do()
	})
	thread.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// TestStranger refuses another user on both ends, even where the folder of the
// socket would let him in. Only the superuser can be two users.
func TestStranger(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	var near *net.UnixConn
	if !asStranger(t, func() (err error) {
		near, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	}) {
		return
	}
	defer near.Close()
	far, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	h := newHub(Options{Now: time.Now, Log: func(text string) { said = append(said, text) }})
	h.attend(t.Context(), far)
	if want := fmt.Sprintf("uid %d", stranger); len(said) != 1 || !strings.Contains(said[0], want) {
		t.Errorf("the hub said %q", said)
	}
	if n, err := near.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the stranger got %d bytes, %v", n, err)
	}

	trap := filepath.Join(dir, "trap")
	var theirs *net.UnixListener
	asStranger(t, func() (err error) {
		theirs, err = net.ListenUnix("unix", &net.UnixAddr{Name: trap, Net: "unix"})
		return err
	})
	defer theirs.Close()
	s := newSite(t, time.Minute)
	if err := s.db.PutInstance(t.Context(), store.Instance{ID: "trap", Kind: Kind, Build: testBuild, Socket: trap}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.db.Acquire(t.Context(), leaseName(testBuild), "trap", leaseTime); err != nil {
		t.Fatal(err)
	}
	_, err = NewDialer(s.options()).Dial(t.Context())
	if foreign := new(ForeignError); !errors.Is(err, ErrNone) || !errors.As(err, &foreign) || foreign.UID != stranger {
		t.Errorf("the instance got %v", err)
	}
}
