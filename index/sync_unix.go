//go:build unix

package index

import (
	"os"
	"path/filepath"
	"syscall"
)

// syncPath brings a file or the names in a folder to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	_ = f.Close()
	return err
}

// whileUnused runs do if no process has the generation open, and keeps others
// from opening it meanwhile: whoever reads it holds a shared lock of bbolt's on
// this file.
func whileUnused(folder string, do func()) {
	f, err := os.Open(filepath.Join(folder, segmentsName, "root.bolt"))
	if err != nil {
		do()
		return
	}
	defer func() { _ = f.Close() }()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		do()
	}
}
