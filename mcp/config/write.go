package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// withFile replaces the contents of a file, which may be missing, by what f
// makes of them, under a lock that holds between processes: path + ".lock", an
// empty file that stays. src is nil for a missing file. Nothing is written when
// f returns nil bytes, the same bytes, or an error.
func withFile(ctx context.Context, path string, f func(target string, src []byte) ([]byte, error)) (err error) {
	if !filepath.IsAbs(path) {
		return &Error{File: path, Rule: "the path of the configuration file must be absolute"}
	}
	target, err := followLink(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	unlock, err := Lock(ctx, target+".lock")
	if err != nil {
		return fmt.Errorf("lock %s: %w", target, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()

	mode := fs.FileMode(0o600)
	switch info, err := os.Stat(target); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return &Error{File: target, Rule: "is not a regular file and is not replaced"}
	default:
		mode = info.Mode().Perm()
	}
	src, err := readFile(target)
	if err != nil {
		return err
	}
	out, err := f(target, src)
	if err != nil || out == nil || bytes.Equal(out, src) {
		return err
	}
	return replaceFile(target, out, mode)
}

// followLink is the file a symbolic link leads to; path itself when it is none.
func followLink(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &Error{File: path, Rule: "is a symbolic link that leads nowhere", Err: unwrapPath(err)}
	}
	return target, nil
}

// replaceFile writes a new file beside the old one and renames it over, so that
// a reader sees the old bytes or the new ones and a crash loses neither.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = os.Chmod(f.Name(), mode)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	// The name itself is made durable; systems that cannot sync a folder say
	// so, and the edit is done all the same.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}
