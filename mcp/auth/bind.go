package auth

import (
	"context"
	"errors"
	"io/fs"

	"mcpproxy/store"
)

// Binding is a store with the key that goes with it.
type Binding struct {
	Key Key
	// Orphan is set when the key file was there before the store was: the store
	// that it went with is gone, with all that was approved. It stays set for
	// as long as this store lasts.
	Orphan bool
}

// Bind opens the key file of a data folder, and makes it where it is missing,
// and notes in the store that they go together. Whoever keeps something in the
// store whose loss must not pass for a fresh start calls it first: only a store
// that is as old as its key is a fresh start. It writes once in the life of a
// store, and costs a query and a read of the file afterwards. When the store
// was exchanged while in use ([store.DB.DataVersion]), it is to be called again.
//
// A key file that was replaced is no Orphan: what the old key was needed for is
// lost, what is in the store is not. The error is [ErrNoStore] for a nil store,
// a [*FileError], or of the store.
func Bind(ctx context.Context, db *store.DB, dataDir string) (Binding, error) {
	if db == nil {
		return Binding{}, ErrNoStore
	}
	mark, err := db.KeyMark(ctx)
	if err != nil {
		return Binding{}, err
	}
	key, err := ReadKey(dataDir)
	if err == nil && key.ID() == mark.ID {
		return Binding{Key: key, Orphan: mark.Orphan}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Binding{}, err
	}
	var b Binding
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		b, err = bind(ctx, tx, dataDir)
		return err
	})
	return b, err
}

// bind is Bind in a transaction. That is what keeps two processes from judging
// one store differently: the key that one has just made is an old one to the
// other.
func bind(ctx context.Context, tx *store.Tx, dataDir string) (Binding, error) {
	mark, err := tx.KeyMark(ctx)
	if err != nil {
		return Binding{}, err
	}
	key, made, err := OpenKey(dataDir)
	if err != nil {
		return Binding{}, err
	}
	if mark.ID == 0 {
		mark.Orphan = !made
	}
	if mark.ID != key.ID() {
		mark.ID = key.ID()
		if err := tx.PutKeyMark(ctx, mark); err != nil {
			return Binding{}, err
		}
	}
	return Binding{Key: key, Orphan: mark.Orphan}, nil
}
