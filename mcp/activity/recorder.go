package activity

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mcpproxy/store"
)

const (
	// groupWait is how long the first record of a group waits for others. What
	// is lost when the process is killed is no older than this and a write.
	groupWait = 400 * time.Millisecond
	// groupMost is the number of records that are written in one transaction.
	groupMost = 256
	// maxPayloads bounds the payloads that wait, in bytes; records that come
	// when they are more go on without theirs.
	maxPayloads = 32 << 20
	// maxRecords bounds the records that wait. It takes a store that cannot be
	// written for long to reach it.
	maxRecords = 1 << 16
	// keepWhole is the size up to which a waiting payload is kept as it is. Of a
	// larger one what will be looked at is copied.
	keepWhole = 1 << 20
	// closeWait bounds the last write.
	closeWait = 2 * time.Second
	// writeTries is how often a group is written that could not be.
	writeTries = 3
)

// Limits say how much is kept. They may change while records are made.
type Limits struct {
	// Payload is how many bytes are kept of each payload, 0 for none.
	Payload int
	// Records, Size and Retention bound the log: its number of records, the
	// bytes it takes in the file, the age of a record. A zero is no limit.
	Records   int64
	Size      int64
	Retention time.Duration
}

// Options are what a Recorder is opened with.
type Options struct {
	// Store returns where to write; it is called once, by the Recorder's
	// goroutine, before the first write. Where it is nil or returns nil, records
	// vanish.
	Store func() *store.DB
	// Instance and Mode are those of records that have none.
	Instance, Mode string
	Limits         Limits
	// Secrets returns the values to mask wherever they turn up, in any order. It
	// is called for each group of records, and may be nil.
	Secrets func() []string
	// SecretName reports whether the name of a member or parameter says that its
	// value is a secret. It may be nil.
	SecretName func(name string) bool
	// OnError is told of records that were lost and why, from the Recorder's
	// goroutine. nil drops the errors.
	OnError func(error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Recorder takes records and writes them later. All methods may be called from
// several goroutines, and on a nil *Recorder, where they do nothing.
type Recorder struct {
	opts    Options
	ids     *ids
	wake    chan struct{} // holds one: there is a record, or the end
	full    chan struct{} // holds one: there is a group, or the end
	changed chan struct{} // holds one: the limits are others
	done    chan struct{}
	stop    context.CancelFunc

	mu      sync.Mutex
	limits  Limits
	waiting []*Record
	bytes   int64 // of the payloads that wait
	added   int64 // records taken so far
	lost    Lost
	closed  bool
	values  []string // the secrets that masker knows
	masker  *Masker
	flushed chan struct{} // closed and replaced whenever a group is done
	handled int64         // records written or lost so far
}

// Lost counts what was not kept.
type Lost struct {
	// Payloads are those of records that came too fast; the records are kept and
	// say so. Records were not written, or came after Close.
	Payloads, Records int64
}

// Open starts a Recorder, which is to be closed before its store. The end of ctx
// does not stop it: what waits then is to be written still.
func Open(ctx context.Context, opts Options) *Recorder {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Store == nil {
		opts.Store = func() *store.DB { return nil }
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &Recorder{
		opts: opts, ids: newIDs(), limits: opts.Limits, stop: stop,
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1), changed: make(chan struct{}, 1), done: make(chan struct{}), flushed: make(chan struct{}),
	}
	go r.run(ctx)
	return r
}

// NewID returns the ID of a record that begins now and is added later, for those
// that are parts of it; "" on a nil Recorder.
func (r *Recorder) NewID() string {
	if r == nil {
		return ""
	}
	return r.ids.next(r.opts.Now())
}

// Add takes a record. It never waits: what costs time is done later. The payloads
// are kept, not copied, and must not be changed.
func (r *Recorder) Add(rec Record) {
	if r == nil {
		return
	}
	r.complete(&rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.waiting) >= maxRecords {
		r.lost.Records++
		return
	}
	size := int64(len(rec.Request) + len(rec.Response))
	if size > 0 && r.bytes+size > maxPayloads {
		rec.Request, rec.Response, rec.Check, size = nil, nil, nil, 0
		rec.Notes = append(slices.Clip(rec.Notes), "the payloads were not kept: too many were waiting to be written")
		r.lost.Payloads++
	}
	r.bytes += size
	r.added++
	r.waiting = append(r.waiting, &rec)
	switch len(r.waiting) {
	case 1:
		nudge(r.wake)
	case groupMost:
		nudge(r.full)
	}
}

// complete fills what a record leaves open.
func (r *Recorder) complete(rec *Record) {
	if rec.Time.IsZero() {
		rec.Time = r.opts.Now()
	}
	if rec.ID == "" {
		rec.ID = r.ids.next(rec.Time)
	}
	if rec.Instance == "" {
		rec.Instance = r.opts.Instance
	}
	if rec.Mode == "" {
		rec.Mode = r.opts.Mode
	}
	if rec.RequestBytes == 0 {
		rec.RequestBytes = int64(len(rec.Request))
	}
	if rec.ResponseBytes == 0 {
		rec.ResponseBytes = int64(len(rec.Response))
	}
	for _, payload := range []*json.RawMessage{&rec.Request, &rec.Response} {
		if len(*payload) <= keepWhole {
			continue
		}
		if most := window(r.present().Payload); len(*payload) > most {
			*payload = slices.Clone((*payload)[:most])
		}
	}
}

// SetLimits replaces the limits. What they do not allow is removed soon.
func (r *Recorder) SetLimits(l Limits) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.limits = l
	r.mu.Unlock()
	nudge(r.changed)
}

func (r *Recorder) present() Limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limits
}

// Masker returns what masks with the present secrets; nil on a nil Recorder.
func (r *Recorder) Masker() *Masker {
	if r == nil {
		return nil
	}
	var values []string
	if r.opts.Secrets != nil {
		values = slices.Sorted(slices.Values(r.opts.Secrets()))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.masker == nil || !slices.Equal(values, r.values) {
		r.values, r.masker = values, NewMasker(values, r.opts.SecretName)
	}
	return r.masker
}

// Lost returns what was not kept so far.
func (r *Recorder) Lost() Lost {
	if r == nil {
		return Lost{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Flush returns when all that was added before has been written, or lost; the
// error is that of ctx.
func (r *Recorder) Flush(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	goal := r.added
	for r.handled < goal {
		flushed := r.flushed
		r.mu.Unlock()
		nudge(r.full)
		select {
		case <-flushed:
		case <-ctx.Done():
			return ctx.Err()
		}
		r.mu.Lock()
	}
	r.mu.Unlock()
	return nil
}

// Close writes what waits, for about two seconds at most, and ends the
// Recorder's goroutine. Records that come later are lost.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	nudge(r.full)
	timer := time.AfterFunc(closeWait, r.stop)
	defer timer.Stop()
	<-r.done
	r.stop()
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
