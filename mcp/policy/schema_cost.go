package policy

import (
	"encoding/json"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// plan is a compiled schema and what its use may cost. A few schemas that refer to
// each other twice take for ever, and a check cannot be interrupted.
type plan struct {
	schema *jsonschema.Schema
	// steps are how many schemas are applied to one value, and on the way to it to
	// those that hold it, each as often as it is referred to; again are those of them
	// that lead back to where they came from.
	steps, again int
}

// validate takes a schema that would take too long, and a validator that gives up,
// for one that found nothing. raw is the instance as it was written.
func (p *plan) validate(instance any, raw json.RawMessage) (err error) {
	steps := p.steps
	for range depthOf(raw) {
		if steps > maxSteps {
			break
		}
		steps *= max(p.again, 1)
	}
	if steps > maxSteps {
		return nil
	}
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	return p.schema.Validate(instance)
}

// depthOf is how many objects and arrays of valid JSON are in each other at most.
func depthOf(raw json.RawMessage) (deepest int) {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}

// measure finds out what a schema may cost.
func measure(schema *jsonschema.Schema) *plan {
	return (costs{}).of(schema)
}

// costs are those of the schemas that were looked at; nil is one that is being
// looked at.
type costs map[*jsonschema.Schema]*plan

func (c costs) of(schema *jsonschema.Schema) *plan {
	if known, seen := c[schema]; seen && known == nil {
		return &plan{schema, 1, 1}
	} else if seen {
		return known
	}
	c[schema] = nil
	p := &plan{schema: schema, steps: 1}
	value := reflect.ValueOf(schema).Elem()
	for i := range value.NumField() {
		switch name := value.Type().Field(i).Name; {
		case !value.Type().Field(i).IsExported():
		case name == "Properties":
			c.most(p, value.Field(i))
		default:
			c.add(p, value.Field(i))
		}
	}
	c[schema] = p
	return p
}

// most adds the dearest of schemas of which each is applied to a value of its own.
func (c costs) most(p *plan, properties reflect.Value) {
	steps, again := 0, 0
	for _, key := range properties.MapKeys() {
		one := &plan{}
		c.add(one, properties.MapIndex(key))
		steps, again = max(steps, one.steps), max(again, one.again)
	}
	p.steps, p.again = min(p.steps+steps, 2*maxSteps), min(p.again+again, 2*maxSteps)
}

// add adds the schemas that a field of a schema holds.
func (c costs) add(p *plan, field reflect.Value) {
	switch field.Kind() {
	case reflect.Interface:
		if !field.IsNil() {
			c.add(p, field.Elem())
		}
	case reflect.Pointer:
		switch held := field.Interface().(type) {
		case *jsonschema.Schema:
			if held != nil {
				one := c.of(held)
				p.steps, p.again = min(p.steps+one.steps, 2*maxSteps), min(p.again+one.again, 2*maxSteps)
			}
		case *jsonschema.DynamicRef:
			if held != nil {
				c.add(p, reflect.ValueOf(held.Ref))
			}
		}
	case reflect.Slice:
		for i := range field.Len() {
			c.add(p, field.Index(i))
		}
	case reflect.Map:
		for _, key := range field.MapKeys() {
			c.add(p, field.MapIndex(key))
		}
	}
}
