package wire

import "sync"

// batch gathers the answers to the requests of one JSON array (protocol
// 2025-03-26), which are sent as one array when the last is there.
type batch struct {
	mu      sync.Mutex
	open    int
	answers []byte
}

// answer adds one answer (nil for a request that gets none) and returns the
// array once it is complete; nil before, and when nothing was answered.
func (b *batch) answer(frame []byte) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if frame != nil {
		if len(b.answers) == 0 {
			b.answers = append(b.answers, '[')
		} else {
			b.answers = append(b.answers, ',')
		}
		b.answers = append(b.answers, frame...)
	}
	if b.open > 0 || len(b.answers) == 0 {
		return nil
	}
	return append(b.answers, ']')
}
