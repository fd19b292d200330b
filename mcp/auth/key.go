package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// KeyFile is the name of the key file in the data folder. It holds 64 hex
// digits, has mode 0600, and stays when the store is lost.
const KeyFile = "mcpproxy.key"

// Key is what secrets are hashed with before they are stored. The zero Key is
// none.
type Key struct{ bytes *string } // of keySize bytes; a pointer to a string is what no verb of fmt follows

// keySize is the length of a key in bytes.
const keySize = 32

// MAC is the HMAC-SHA256 of a text. What was made for one purpose never equals
// what was made for another.
func (k Key) MAC(purpose string, text []byte) [32]byte {
	mac := hmac.New(sha256.New, []byte(*k.bytes))
	mac.Write([]byte(purpose))
	mac.Write([]byte{0})
	mac.Write(text)
	return [32]byte(mac.Sum(nil))
}

// ID names the key without giving it away. It is above 0; that of no key is 0.
func (k Key) ID() int64 {
	if k.bytes == nil {
		return 0
	}
	sum := k.MAC("key id", nil)
	return int64(binary.BigEndian.Uint64(sum[:])>>1 | 1)
}

// ReadKey reads the key file of a data folder. The error is a [*FileError],
// which wraps fs.ErrNotExist where there is none.
func ReadKey(dataDir string) (Key, error) {
	path := filepath.Join(dataDir, KeyFile)
	for end := time.Now().Add(keyWait); ; time.Sleep(keyPoll) {
		text, err := readPrivate(path)
		if err != nil {
			return Key{}, err
		}
		digits := strings.TrimSpace(string(text))
		key, err := hex.DecodeString(digits)
		switch {
		case err == nil && len(key) == keySize:
			whole := string(key)
			return Key{&whole}, nil
		case len(digits) >= 2*keySize || time.Now().After(end):
			return Key{}, &FileError{Path: path, Reason: "is not the key that it was", Hint: "remove it and regenerate the agent tokens"}
		}
	}
}

// Where no file can be made whole in one step, another process may have to wait
// for the one that is making it.
const (
	keyWait = time.Second
	keyPoll = 10 * time.Millisecond
)

// OpenKey reads the key file of a data folder and makes it where it is missing.
// made tells that this call made it; of several processes that call at once one
// makes it, and all get the same key. Whether the key is as old as the store is
// another question, which [Bind] answers.
func OpenKey(dataDir string) (key Key, made bool, err error) {
	key, err = ReadKey(dataDir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return Key{}, false, fmt.Errorf("make key file: %w", err)
	}
	made, err = makeKey(filepath.Join(dataDir, KeyFile), os.Link)
	if err != nil {
		return Key{}, false, fmt.Errorf("make key file: %w", err)
	}
	key, err = ReadKey(dataDir)
	return key, made, err
}

// makeKey makes the file at path, unless it is there: aside, and then under its
// name in one step by link.
func makeKey(path string, link func(from, to string) error) (made bool, err error) {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // never fails
	text := []byte(hex.EncodeToString(key[:]) + "\n")
	aside, err := os.CreateTemp(filepath.Dir(path), "."+KeyFile+"-*") // of mode 0600
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Remove(aside.Name())) }()
	if err := fill(aside, text); err != nil {
		return false, err
	}
	switch err := link(aside.Name(), path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, nil
	}
	// Not every file system has links.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := fill(f, text); err != nil {
		return false, errors.Join(err, os.Remove(path))
	}
	return true, nil
}

// fill writes a new file to the disk and closes it.
func fill(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
