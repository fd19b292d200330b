package config

import (
	"errors"
	"fmt"
	"runtime"
)

// SearchEmbedding is an endpoint of embeddings that has a say in the search.
type SearchEmbedding struct {
	URL   string // empty: none
	Model string
	Key   string // as written, references unresolved
	// Weight is how much its opinion counts beside the words, in percent.
	Weight int
}

// Resolve returns the endpoint with the values of references in place of them.
// The error names the key that has one without a value.
func (s SearchEmbedding) Resolve(env Env, file string) (SearchEmbedding, error) {
	r := &resolver{env: env, environ: newEnviron(env.Environ, runtime.GOOS), file: file}
	for _, field := range []struct {
		key  string
		text *string
	}{{"url", &s.URL}, {"model", &s.Model}, {"api_key", &s.Key}} {
		value, err := r.expand("", field.key, *field.text)
		if unresolved := new(ReferenceError); errors.As(err, &unresolved) {
			return s, fmt.Errorf("search_embedding.%s: %s %s", field.key, unresolved.Variable, unresolved.Why)
		}
		*field.text = value
	}
	return s, nil
}
