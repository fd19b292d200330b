package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bounds of what is checked against a schema. What is beyond them passes.
const (
	maxSchema    = 256 << 10 // bytes
	maxInstance  = 1 << 20   // bytes
	maxSchemas   = 512       // compiled at a time
	maxDepth     = 100       // of objects and arrays in each other; the time to compile rises with its cube
	maxSteps     = 100_000   // schemas that are applied to one value, those that others refer to each time
	maxViolation = 5         // that are named
)

// schemas check values against the JSON Schemas of servers (drafts 4 to
// 2020-12, by their $schema, the last by default). The zero value is ready.
type schemas struct {
	mu       sync.Mutex
	compiled map[string]*plan // by source; nil for one that cannot be compiled
}

// violations are the ways in which a value does not fit a schema, in words. There
// are none where that cannot be told: for a schema that is none, that refers to
// another document, or that is too large. Nothing is ever fetched.
func (s *schemas) violations(schema, value json.RawMessage) []string {
	if len(schema) == 0 || len(schema) > maxSchema || len(value) > maxInstance {
		return nil
	}
	compiled := s.compile(schema)
	if compiled == nil {
		return nil
	}
	// Numbers stay as they are written.
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return []string{"is no JSON"}
	}
	return describe(compiled.validate(instance, value))
}

// compile returns nil for a schema that cannot be compiled.
func (s *schemas) compile(schema json.RawMessage) *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	compiled, known := s.compiled[string(schema)]
	if known {
		return compiled
	}
	if s.compiled == nil || len(s.compiled) >= maxSchemas {
		s.compiled = map[string]*plan{}
	}
	compiled = compile(schema)
	s.compiled[string(schema)] = compiled
	return compiled
}

const schemaURL = "mem:///schema.json"

func compile(schema json.RawMessage) (compiled *plan) {
	defer func() {
		if recover() != nil {
			compiled = nil
		}
	}()
	if depthOf(schema) > maxDepth {
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil
	}
	ready, err := c.Compile(schemaURL)
	if err != nil {
		return nil
	}
	return measure(ready)
}

// noLoader fetches nothing: a schema comes from a server that must not make us
// read files or connect anywhere.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not read", url) }

// describe returns one line for each place that does not fit.
func describe(err error) []string {
	invalid := new(jsonschema.ValidationError)
	if !errors.As(err, &invalid) {
		return nil
	}
	if cyclic(invalid) {
		return nil // a fault of the schema
	}
	var lines []string
	// The first line names the schema, which is the only one there is.
	_, text, _ := strings.Cut(invalid.Error(), "\n")
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimLeft(strings.TrimSpace(line), "- "))
	}
	if len(lines) > maxViolation {
		lines = append(lines[:maxViolation], fmt.Sprintf("and %d more", len(lines)-maxViolation))
	}
	return lines
}

// cyclic reports whether the schema led back to where it was.
func cyclic(e *jsonschema.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(e.Causes, cyclic)
}
