package hub

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"mcpproxy/mcp/upstream"
)

// NewID returns an id that no other instance or hub has.
func NewID() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// naming gives the processes of one hub their ids. The key is random, so that an
// id tells nothing of the secrets that went into it.
type naming struct{ key []byte }

func newNaming() naming {
	key := make([]byte, sha256.Size)
	rand.Read(key)
	return naming{key}
}

// id is equal for entries that may share a process: all that the process could
// see, and what its output is recorded under, is the same. It begins with the
// server's name.
func (n naming) id(e upstream.Entry) string {
	mac := hmac.New(sha256.New, n.key)
	// With their lengths, so that no text can run into the next.
	hash := func(texts ...string) {
		mac.Write(binary.AppendUvarint(nil, uint64(len(texts))))
		for _, text := range texts {
			mac.Write(binary.AppendUvarint(nil, uint64(len(text))))
			mac.Write([]byte(text))
		}
	}
	hash(e.Name, e.Fingerprint, e.Command, e.Dir, canonical(e.Announced))
	hash(e.Args...)
	hash(e.Env...)
	hash(e.Secrets...)
	return e.Name + "-" + hex.EncodeToString(mac.Sum(nil)[:12])
}

// canonical is the same text for all spellings of a JSON value.
func canonical(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	var value any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if err := in.Decode(&value); err != nil {
		return string(raw)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(out)
}
