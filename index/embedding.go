package index

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"

	"mcpproxy/mcp/catalog"
)

const (
	// embeddedText is how much of an item is embedded, in bytes.
	embeddedText = 2000
	// embeddedAtOnce is how many texts go into a request. What was answered is
	// kept, so that a slow endpoint is waited for by several searches.
	embeddedAtOnce = 16
	// keptVectors is how many vectors of items stay in memory.
	keptVectors = 20_000
	// maxEmbeddingAnswer is the most that is read of an answer, in bytes.
	maxEmbeddingAnswer = 16 << 20
)

// EmbeddingOptions name an endpoint that speaks as OpenAI's embeddings do.
type EmbeddingOptions struct {
	// URL is that of the API, https://host/v1, or of its embeddings.
	URL string
	// Model is sent as it is.
	Model string
	// Key is sent as a bearer token, "" = none.
	Key string
	// Client makes the requests, nil = http.DefaultClient.
	Client *http.Client
}

// Embedding is a Scorer by the cosine of the embeddings of query and item. It
// keeps the embeddings of items in memory.
type Embedding struct {
	options EmbeddingOptions

	mu      sync.Mutex
	vectors map[[sha256.Size]byte][]float32
}

// NewEmbedding gives the Scorer; nothing is asked before the first search.
func NewEmbedding(o EmbeddingOptions) *Embedding {
	if !strings.HasSuffix(o.URL, "/embeddings") {
		o.URL = strings.TrimSuffix(o.URL, "/") + "/embeddings"
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	return &Embedding{options: o, vectors: map[[sha256.Size]byte][]float32{}}
}

// Scores returns the cosines.
func (e *Embedding) Scores(ctx context.Context, query string, items []*catalog.Item) ([]float64, error) {
	vectors := make([][]float32, len(items))
	keys := make([][sha256.Size]byte, len(items))
	var missing []int
	texts := []string{cut(query, embeddedText)}
	for i, it := range items {
		text := embeddingText(it)
		keys[i] = sha256.Sum256([]byte(text))
		e.mu.Lock()
		vectors[i] = e.vectors[keys[i]]
		e.mu.Unlock()
		if vectors[i] == nil {
			missing = append(missing, i)
			texts = append(texts, text)
		}
	}
	var all [][]float32
	for len(all) < len(texts) {
		some, err := e.embed(ctx, texts[len(all):min(len(all)+embeddedAtOnce, len(texts))])
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		if len(e.vectors) > keptVectors {
			clear(e.vectors)
		}
		for n, vector := range some {
			if n += len(all); n > 0 {
				vectors[missing[n-1]] = vector
				e.vectors[keys[missing[n-1]]] = vector
			}
		}
		e.mu.Unlock()
		all = append(all, some...)
	}
	scores := make([]float64, len(items))
	for i, vector := range vectors {
		if len(vector) != len(all[0]) {
			return nil, errors.New("the embeddings differ in length")
		}
		for n := range vector {
			scores[i] += float64(vector[n]) * float64(all[0][n])
		}
	}
	return scores, nil
}

// embeddingText is what an item says of itself, as a text.
func embeddingText(it *catalog.Item) string {
	var def definition
	_ = json.Unmarshal(it.Raw, &def)
	name, description := it.Ref.Name, def.Description.value
	if o := it.Override; o != nil {
		if o.Name != "" {
			name = o.Name
		}
		if o.Description != "" {
			description = o.Description
		}
	}
	return cut(it.Server+" "+name+": "+description, embeddedText)
}

// embed asks the endpoint and returns vectors of length one, in the order of the
// texts.
func (e *Embedding) embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.options.Model, "input": texts})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.options.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask for embeddings: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if e.options.Key != "" {
		request.Header.Set("Authorization", "Bearer "+e.options.Key)
	}
	response, err := e.options.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask for embeddings: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for embeddings: the endpoint answered %s", response.Status)
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxEmbeddingAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read embeddings: %w", err)
	}
	vectors := make([][]float32, len(texts))
	for _, each := range answer.Data {
		if each.Index < 0 || each.Index >= len(texts) || !normalise(each.Embedding) {
			return nil, errors.New("read embeddings: one of them is none")
		}
		vectors[each.Index] = each.Embedding
	}
	for _, vector := range vectors {
		if vector == nil {
			return nil, fmt.Errorf("read embeddings: %d of %d came", len(answer.Data), len(texts))
		}
	}
	return vectors, nil
}

// normalise brings a vector to the length one; false = it has no direction.
func normalise(vector []float32) bool {
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
		return false
	}
	for i := range vector {
		vector[i] = float32(float64(vector[i]) / math.Sqrt(sum))
	}
	return true
}
