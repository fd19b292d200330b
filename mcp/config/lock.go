package config

import (
	"context"
	"errors"
	"os"
	"time"
)

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 20 * time.Millisecond

// Lock takes the lock file at path, which is made where it is missing and stays.
// It waits until ctx ends while another process, or another call in this one,
// has it. Unlock gives it back; the system does so when the process ends,
// however it ends. The error is ctx's cause or about the file.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		taken, err := tryLock(f)
		if taken {
			return f.Close, nil // closing gives the lock back
		}
		if err == nil {
			select {
			case <-ticker.C:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		return nil, errors.Join(err, f.Close())
	}
}
