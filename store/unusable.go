package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// UnusableError says why a file cannot serve as the store. The file is as it
// was.
type UnusableError struct {
	// Path is the file.
	Path string
	// Reason completes "the store cannot be used: ", as in "it is read-only".
	Reason string
	// Hint is what a person can do about it.
	Hint string
	// Err is the cause, nil where Reason says it all.
	Err error
}

// Error names the file, the reason and the cause.
func (e *UnusableError) Error() string {
	text := fmt.Sprintf("store %s cannot be used: %s", e.Path, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *UnusableError) Unwrap() error { return e.Err }

// unusable puts into words why file could not be opened.
func unusable(file string, err error) *UnusableError {
	u := &UnusableError{Path: file, Reason: "it cannot be opened", Hint: elsewhere, Err: err}
	const moveAway = "move it away and a new one is made; approvals, tokens and the activity log are in it"
	switch code(err) {
	case sqlite3.SQLITE_NOTADB:
		u.Reason, u.Hint = "it is not a database", moveAway
	case sqlite3.SQLITE_CORRUPT:
		u.Reason, u.Hint = "it is damaged", moveAway
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		u.Reason = "it cannot be written to"
	case sqlite3.SQLITE_FULL:
		u.Reason, u.Hint = "the disk is full", "free some space, or set data_dir to another folder"
	case sqlite3.SQLITE_BUSY:
		u.Reason, u.Hint = fmt.Sprintf("it was locked for %s", busyTimeout), "end the process that holds it"
	}
	var newer *newerError
	switch {
	case errors.As(err, &newer):
		u.Reason, u.Hint, u.Err = newer.Error(), "update mcpproxy, or set data_dir to another folder", nil
	case errors.Is(err, errForeign):
		u.Reason, u.Hint, u.Err = errForeign.Error(), moveAway, nil
	case errors.Is(err, errReplaced):
		u.Reason, u.Hint, u.Err = errReplaced.Error(), "restart to use the new file", nil
	}
	return u
}

// code is the primary SQLite result code in err, 0 if there is none.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}
