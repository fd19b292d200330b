package upstream

import (
	"context"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processTree is a job object that ends all its processes when it is closed,
// also when this process dies.
type processTree struct {
	child *os.Process
	job   windows.Handle
}

func newProcessTree(child *os.Process) processTree {
	t := processTree{child: child}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return t
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return t
	}
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(child.Pid))
	if err != nil {
		windows.CloseHandle(job)
		return t
	}
	defer windows.CloseHandle(handle)
	if err := windows.AssignProcessToJobObject(job, handle); err != nil {
		windows.CloseHandle(job)
		return t
	}
	t.job = job
	return t
}

// terminate does nothing: Windows has no gentle signal for a process without a
// console; the closed stdin was the gentle word.
func (t processTree) terminate() {}

func (t processTree) kill() {
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
		return
	}
	_ = t.child.Kill()
}

func (t processTree) release() {
	if t.job != 0 {
		windows.CloseHandle(t.job)
	}
}

func (t processTree) gone(ctx context.Context, exited <-chan struct{}, grace time.Duration) bool {
	select {
	case <-exited:
		return true
	case <-time.After(grace):
	case <-ctx.Done():
	}
	return false
}
