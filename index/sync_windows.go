package index

import "os"

// syncPath brings a file to the disk; Windows has no such call for folders.
func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil
		}
		return err
	}
	err = f.Sync()
	_ = f.Close()
	return err
}

// whileUnused runs do, which begins with a rename: Windows refuses it while a
// process has a file of the folder open.
func whileUnused(_ string, do func()) { do() }
