package activity

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// nice is how far the thread that writes stands back behind those that answer.
const nice = 10

// inBackground gives the calling goroutine, which does not return, a thread of
// low priority: on a machine with few processors calls would wait for what is
// written about others.
func inBackground() {
	runtime.LockOSThread() // the thread ends with the goroutine
	// It is a thread like others where the system does not allow it.
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice)
}
