package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"mcpproxy/store"
)

// run writes groups until the Recorder is closed and nothing waits.
func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	inBackground()
	w := writer{Recorder: r, holder: r.ids.next(r.opts.Now())}
	sweep := time.NewTimer(firstSweep)
	defer sweep.Stop()
	for {
		select {
		case <-r.wake:
			r.gather()
		case <-r.full:
		case <-r.changed:
			sweep.Reset(0)
		case <-sweep.C:
			sweep.Reset(w.sweep(ctx))
		}
		if w.drain(ctx) {
			return
		}
	}
}

// drain writes what makes a group, and what is left of others. It is true when
// the Recorder is closed and nothing waits.
func (w *writer) drain(ctx context.Context) (last bool) {
	for n := groupMost; n == groupMost && !last; {
		var group []*Record
		group, last = w.take()
		if n = len(group); n > 0 {
			w.write(ctx, group)
		}
	}
	return last
}

// gather waits for the others of a group.
func (r *Recorder) gather() {
	timer := time.NewTimer(groupWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.full:
	}
}

// take removes the records of the next group. last is true when there will be no
// others.
func (r *Recorder) take() (group []*Record, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), groupMost)
	group = r.waiting[:n:n]
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil // lets go of the payloads
	}
	for i := range group {
		r.bytes -= int64(len(group[i].Request) + len(group[i].Response))
	}
	return group, r.closed && len(r.waiting) == 0
}

// settled counts n records as written, or lost as well.
func (r *Recorder) settled(n, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled += int64(n)
	r.lost.Records += int64(lost)
	close(r.flushed)
	r.flushed = make(chan struct{})
}

// writer is what the Recorder's goroutine has for itself.
type writer struct {
	*Recorder
	db     *store.DB
	opened bool
	holder string  // for the lease
	masker *Masker // for the present group
}

// store opens the store when it is needed first.
func (w *writer) store() *store.DB {
	if !w.opened {
		w.db, w.opened = w.opts.Store(), true
	}
	return w.db
}

// write masks and writes a group. What cannot be written after some tries is
// lost, and told.
func (w *writer) write(ctx context.Context, group []*Record) {
	db := w.store()
	if db == nil {
		w.settled(len(group), 0)
		return
	}
	w.masker = w.Masker()
	limits := w.present()
	kept := limits.rows(w.opts.Now())
	rows := make([]store.Activity, len(group))
	for i := range group {
		rows[i] = w.row(group[i], limits.Payload)
		group[i] = nil // lets go of the payloads
	}
	var err error
	for try := 0; try < writeTries && ctx.Err() == nil; try++ {
		err = db.AddActivity(ctx, rows, kept)
		if err == nil {
			w.settled(len(group), 0)
			return
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	w.settled(len(group), len(group))
	w.opts.OnError(fmt.Errorf("%d records of activity were lost: %w", len(group), err))
}

// row is a record as it is stored, without its secrets. What is an identifier of
// ours is taken as it is.
func (w *writer) row(rec *Record, most int) store.Activity {
	request, named, inRequest := payload(w.masker, rec.Request, "request", most)
	m := w.masker.knowing(named)
	response, _, inResponse := payload(m, rec.Response, "response", most)
	notes := slices.Clone(rec.Notes)
	if rec.Check != nil {
		notes = append(notes, rec.Check()...)
	}
	for i, note := range notes {
		notes[i] = m.Text(note)
	}
	return store.Activity{
		ID: rec.ID, At: rec.Time, Duration: rec.Duration, Kind: string(rec.Kind), Status: string(rec.Status),
		Server: m.name(rec.Server), Tool: m.name(rec.Tool), Caller: rec.Caller, Token: m.name(rec.Token), Client: m.name(rec.Client),
		ParentID: rec.ParentID, RequestBytes: rec.RequestBytes, ResponseBytes: rec.ResponseBytes, Request: request, Response: response,
		ActivityDetail: store.ActivityDetail{
			Instance: rec.Instance, Session: m.name(rec.Session), Mode: rec.Mode, Variant: m.name(rec.Variant), Tier: rec.Tier,
			Intent: m.Text(rec.Intent), RequestID: m.name(rec.RequestID), Error: m.Text(rec.Error),
			Findings: jsonList(append(inRequest, inResponse...)), Notes: jsonList(notes),
		},
	}
}

// payload finds and masks what is sensitive in a payload.
func payload(m *Masker, raw []byte, where string, most int) (kept string, named []string, found []Finding) {
	if len(raw) == 0 {
		return "", nil, nil
	}
	spans := m.find(raw[:min(len(raw), window(most))])
	kept, named = m.payload(raw, spans, most)
	return kept, named, tally(spans, where)
}

// rows are the limits as the store has them.
func (l Limits) rows(now time.Time) store.ActivityLimits {
	out := store.ActivityLimits{Records: l.Records, Bytes: l.Size}
	if l.Retention > 0 {
		out.Before = firstID(now.Add(-l.Retention))
	}
	return out
}

// jsonList is a list as JSON, "" for an empty one.
func jsonList[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts and numbers can always be marshalled
	}
	return string(text)
}
