package main

import (
	"fmt"
	"slices"

	"github.com/tiktoken-go/tokenizer"
)

// counter counts the tokens of a text. The vocabulary is in the library.
type counter struct{ codec tokenizer.Codec }

func newCounter() (counter, error) {
	codec, err := tokenizer.Get(tokenizer.Cl100kBase)
	if err != nil {
		return counter{}, fmt.Errorf("open cl100k_base: %w", err)
	}
	return counter{codec}, nil
}

func (c counter) tokens(text string) (int, error) {
	n, err := c.codec.Count(text)
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", err)
	}
	return n, nil
}

// sample are counts of one kind of text.
type sample []int

func (s sample) mean() int {
	if len(s) == 0 {
		return 0
	}
	sum := 0
	for _, n := range s {
		sum += n
	}
	return (sum + len(s)/2) / len(s)
}

// at is the count below which a share of the sample lies.
func (s sample) at(share float64) int {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(share*float64(len(s))), len(s)-1)]
}
