package auth

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// FileError says why a file that holds a secret is not used.
type FileError struct {
	// Path is the file.
	Path string
	// Reason completes "the file ...", as in "can be read by other users".
	Reason string
	// Hint is what a person can do about it.
	Hint string
	// Err is the cause, nil where Reason says it all.
	Err error
}

// Error names the file, the reason and the cause, and nothing that is in it.
func (e *FileError) Error() string {
	text := fmt.Sprintf("%s %s", e.Path, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// privateMost is more than any file of a secret has, in bytes.
const privateMost = 4096

// readPrivate reads a small file that only this user can read. The error is a
// [*FileError] and wraps fs.ErrNotExist where there is no file.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path) // to open a pipe could wait for ever
	if err == nil && !info.Mode().IsRegular() {
		return nil, &FileError{Path: path, Reason: "is not a regular file", Hint: "give the path of a file"}
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	// What was opened counts, whatever is at the path by now.
	if info, err = f.Stat(); err != nil {
		return nil, unreadable(path, err)
	}
	if refused := shared(path, info, os.Geteuid()); refused != nil {
		return nil, refused
	}
	text, err := io.ReadAll(io.LimitReader(f, privateMost+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(text) > privateMost {
		return nil, &FileError{Path: path, Reason: "is too long to be a secret", Hint: "look whether it is the right file"}
	}
	return text, nil
}

func unreadable(path string, err error) *FileError {
	var inPath *os.PathError
	if errors.As(err, &inPath) {
		err = inPath.Err
	}
	return &FileError{Path: path, Reason: "cannot be read", Hint: "look whether it is there and yours", Err: err}
}
