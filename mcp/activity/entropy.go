package activity

import (
	"bytes"
	"math"
)

// The length of strings that can be secrets by their look. Longer ones are data
// in base64: images, certificates, archives.
const (
	shortestRandom = 24
	longestRandom  = 128
)

// leastEntropy is in bits for each character, of which random texts of the
// shortest length have some 4.2.
const leastEntropy = 3.7

// line is where something random ended.
type line struct {
	end  int
	kept bool // it is the last span
}

// random adds the piece from start to end if it looks random, else those words of
// it that do: letters of both cases and digits in quick change. Hashes and UUIDs
// do not, they have one case; names and paths do not, they stay in one class for
// long.
func (f *finder) random(start, end int) {
	piece := f.b[start:end]
	if looksRandom(piece) {
		f.addRandom(start, end)
		return
	}
	if bytes.IndexByte(piece, '/') < 0 {
		return
	}
	for i := start; i < end; i++ { // over the slash
		w := i
		i += count(f.b[i:end], word)
		if i-w >= shortestRandom && looksRandom(f.b[w:i]) {
			f.addRandom(w, i)
		}
	}
}

// addRandom adds what looks random unless it is data: a line of several, or
// something that its surroundings name.
func (f *finder) addRandom(start, end int) {
	before := f.line
	f.line = line{end: end}
	switch {
	case f.continues(before.end, start):
		if before.kept {
			f.spans = f.spans[:len(f.spans)-1]
		}
	case !f.innocent(start, f.b[start:end]):
		f.add(start, end, HighEntropy)
		f.line.kept = true
	}
}

// continues reports whether only a line break stands between two places.
func (f *finder) continues(from, to int) bool {
	if from == 0 || to-from > 8 {
		return false
	}
	between := f.b[from:to]
	return bytes.ContainsAny(between, "\nn") && len(bytes.Trim(between, "\r\n\\rn= ")) == 0
}

// innocent reports whether what stands around a random text says that it is no
// secret.
func (f *finder) innocent(start int, text []byte) bool {
	for _, prefix := range []string{"sha1-", "sha256-", "sha384-", "sha512-", "eyJ"} {
		if bytes.HasPrefix(text, []byte(prefix)) {
			return true
		}
	}
	before := bytes.TrimRight(f.b[max(0, start-24):start], `\": `)
	for _, mark := range []string{"base64,", "h1", "sha256", "sha384", "sha512", "integrity", `"data`, `"blob`} {
		if bytes.HasSuffix(before, []byte(mark)) {
			return true
		}
	}
	return false
}

// looksRandom measures how often the class changes from one character to the
// next, and the entropy of the characters.
func looksRandom(text []byte) bool {
	var seen, last byte
	changes, numbers := 0, 0
	for _, c := range text {
		class := classes[c] & (digit | upper | lower)
		if class == 0 {
			continue // Names have many of these, random texts few.
		}
		seen |= class
		if class != last && (last != upper || class != lower) { // Names change so at each word.
			changes++
		}
		if class == digit {
			numbers++
		}
		last = class
	}
	// Of random base64, 45 of 100 neighbours differ; of what people name, 25.
	if seen != digit|upper|lower || numbers < max(2, len(text)/16) || 100*(changes-1) < 32*(len(text)-1) {
		return false
	}
	var counts [256]uint8
	for _, c := range text {
		counts[c]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits >= leastEntropy
}
