package config

import (
	"strings"
	"testing"
)

func TestSearchEmbedding(t *testing.T) {
	c := parse(t, `{"search_embedding": {"url": "http://${HOST:-127.0.0.1}/v1", "model": "m", "api_key": "${env:KEY}", "weight": 30}}`)
	env := Env{Environ: []string{"KEY=k"}}
	want := SearchEmbedding{URL: "http://127.0.0.1/v1", Model: "m", Key: "k", Weight: 30}
	if got, err := c.SearchEmbedding.Resolve(env, c.Path); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := c.SearchEmbedding.Resolve(Env{}, c.Path)
	if err == nil || !strings.Contains(err.Error(), "search_embedding.api_key: ${env:KEY} is not set") {
		t.Errorf("without a key: %v", err)
	}
}
