package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// socketEnding is how the names of sockets end.
const socketEnding = ".sock"

// tidyTemp is where sockets go when both other places have paths that are too
// long; it exists wherever hubs do.
const tidyTemp = "/tmp"

// socketPath makes the folder for the hub's socket and returns the path of the
// socket in it: <dataDir>/hub, or a folder with a short path where the system
// takes none as long as that.
func socketPath(dataDir, hubID string) (string, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("place of the hub's socket: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dataDir); err == nil {
		dataDir = real
	}
	id := sha256.Sum256([]byte(hubID))
	name := hex.EncodeToString(id[:6]) + socketEnding
	data := sha256.Sum256([]byte(dataDir))
	short := "mcpproxy-" + strconv.Itoa(os.Geteuid()) + "-" + hex.EncodeToString(data[:6])
	folders := []string{
		filepath.Join(dataDir, "hub"),
		filepath.Join(os.TempDir(), short),
		filepath.Join(tidyTemp, short),
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if len(path) >= maxSocketPath() {
			continue
		}
		if err := ownFolder(folder); err != nil {
			return "", err
		}
		return path, nil
	}
	return "", fmt.Errorf("no path for the hub's socket is short enough (below %d bytes); set data_dir to a shorter one", maxSocketPath())
}

// ownFolder makes a folder of mode 0700, and refuses one that is there but could
// be another user's trap.
func ownFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder of the hub's socket: %w", err)
	}
	// Not Stat: a link is refused wherever it leads.
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("folder of the hub's socket: %w", err)
	}
	switch {
	case !info.IsDir():
		return &FolderError{folder, "is not a folder", "remove it"}
	case !owned(info):
		return &FolderError{folder, "belongs to another user", "have it removed, or set data_dir to a folder of yours"}
	case info.Mode().Perm()&0o077 != 0:
		return &FolderError{folder, "is open to other users", "chmod 700 " + folder}
	}
	return nil
}

// FolderError tells that the folder of the hub's socket cannot be trusted.
type FolderError struct {
	Folder string
	Reason string
	// Hint is what a person can do.
	Hint string
}

// Error names folder, reason and remedy.
func (e *FolderError) Error() string {
	return fmt.Sprintf("the folder of the hub's socket, %s, %s; %s", e.Folder, e.Reason, e.Hint)
}

// listenTries bounds how often the folder is made again that another hub, which
// was the last in it, removed.
const listenTries = 3

// listen makes the hub's socket, for this user alone, and its folder.
func listen(dataDir, hubID string) (*net.UnixListener, error) {
	for try := 1; ; try++ {
		path, err := socketPath(dataDir, hubID)
		if err != nil {
			return nil, err
		}
		l, err := listenAt(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try == listenTries {
			return l, err
		}
	}
}

func listenAt(path string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for instances: %w", err)
	}
	// Nobody else could reach it in its folder meanwhile.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for instances: %w", err), l.Close())
	}
	return l, nil
}

// unlisten removes the socket, and the folder if no other hub has one there. A
// second time does nothing.
func unlisten(l *net.UnixListener) {
	if l.Close() == nil {
		_ = os.Remove(filepath.Dir(l.Addr().String())) // fails where there is another
	}
}

// oldSockets are the paths of the sockets in a folder that were made before a
// time.
func oldSockets(folder string, before time.Time) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for sockets of dead hubs: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if entry.Type()&fs.ModeSocket == 0 || filepath.Ext(entry.Name()) != socketEnding {
			continue
		}
		if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
			paths = append(paths, filepath.Join(folder, entry.Name()))
		}
	}
	return paths, nil
}
