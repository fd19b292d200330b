package router

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

const (
	// roomy is the limit from which a notice is a sentence.
	roomy = 300
	// leastShare is the part of the limit, one in so many, that is worth a key.
	leastShare = 10
)

// Fit is the result of a tool as the client gets it. One whose text and structured
// content have more characters than the limit is kept in the store, and what stands
// for it has no structured content, whose JSON stands in the text then, and no more
// characters than the limit in all its texts together, notices included: the
// beginning of each text that is cut, and how to read on. The text of embedded
// resources counts, images, audio and blobs do not; they stay, as does the order of
// the blocks. A result that cannot be kept is returned whole.
func (p *Pages) Fit(ctx context.Context, a asker, item *catalog.Item, result json.RawMessage) json.RawMessage {
	limit := p.options.Limit()
	if limit <= 0 || len(result) <= limit { // no character has less than a byte
		return result
	}
	limit = max(limit, leastLimit)
	db := p.options.Store()
	if db == nil {
		return result
	}
	c := takeApart(result)
	if c.size <= limit {
		return result
	}
	if c.structured != nil && !c.holdsStructured() {
		c.texts = append(c.texts, blockText{block: len(c.blocks), path: []string{"text"}, text: c.structured, size: length(c.structured)})
		c.blocks = append(c.blocks, textBlock(c.structured))
	}
	entries := c.cut(limit)
	if len(entries) > 0 && !p.keep(ctx, db, a, item, entries) {
		return result
	}
	return c.assemble(result)
}

// contents are the content blocks of a result with the texts among them.
type contents struct {
	blocks     []json.RawMessage // one that is nil is left out
	after      map[int][]byte    // texts of notices that stand behind a block
	texts      []blockText
	structured json.RawMessage // nil for none
	size       int             // characters of all texts and of structured
}

// blockText is the text of one block.
type blockText struct {
	block int // its number
	path  []string
	text  []byte
	size  int // characters
}

func takeApart(result json.RawMessage) *contents {
	c := &contents{after: map[int][]byte{}}
	for block := range wire.Elements(wire.Member(result, "content")) {
		c.blocks = append(c.blocks, block)
		path := []string{"text"}
		switch kind, _ := wire.String(wire.Member(block, "type")); kind {
		case "text":
		case "resource":
			path = []string{"resource", "text"}
		default:
			continue
		}
		if raw := wire.Member(block, path...); len(raw) > 0 && raw[0] == '"' {
			t := blockText{block: len(c.blocks) - 1, path: path, text: textOf(raw)}
			t.size = length(t.text)
			c.texts = append(c.texts, t)
			c.size += t.size
		}
	}
	if s := wire.Member(result, "structuredContent"); !wire.IsNull(s) {
		c.structured = s
		c.size += length(s)
	}
	return c
}

// cut shortens the texts so that all have at most limit characters together, and
// returns what is to be kept for that.
func (c *contents) cut(limit int) (entries []keptText) {
	total := 0
	for _, t := range c.texts {
		total += t.size
	}
	if total <= limit {
		return nil
	}
	cut, share := allot(c.texts, limit)
	if cut == nil {
		from, left := whole(c.texts, limit-noticeLength(total, limit))
		if from < len(c.texts)-1 {
			return []keptText{c.gather(from, limit)}
		}
		cut, share = map[int]bool{from: true}, left+noticeLength(total, limit)
	}
	for i, t := range c.texts {
		if !cut[i] {
			continue
		}
		e, shown, notice := cutShort(t, share, limit)
		if e.Records > 0 {
			c.after[t.block] = notice // so that what is shown can be parsed
		} else {
			shown = slices.Concat(shown, []byte{'\n'}, notice)
		}
		c.blocks[t.block] = wire.SetMember(c.blocks[t.block], appendQuoted(nil, shown), t.path...)
		entries = append(entries, e)
	}
	return entries
}

// allot chooses which texts are cut, the longest ones, and how many characters each of
// them may keep, its notice included. There are none where a share would be too
// small.
func allot(texts []blockText, limit int) (cut map[int]bool, share int) {
	order := make([]int, len(texts))
	left, longest := limit, 0
	for i, t := range texts {
		order[i] = i
		left -= t.size
		longest = max(longest, t.size)
	}
	slices.SortStableFunc(order, func(i, j int) int { return texts[j].size - texts[i].size })
	cut = map[int]bool{}
	for n, i := range order {
		cut[i] = true
		left += texts[i].size
		share = left / (n + 1)
		if share >= noticeLength(longest, limit)+limit/leastShare {
			return cut, share
		}
	}
	return nil, 0
}

// whole is the number of the first text that finds no room, and the room that the
// ones in front of it leave.
func whole(texts []blockText, room int) (from, left int) {
	for from < len(texts)-1 && texts[from].size <= room {
		room -= texts[from].size
		from++
	}
	return from, room
}

// gather keeps all blocks with text from one on as an array of blocks, and leaves a
// notice in their place.
func (c *contents) gather(from, limit int) keptText {
	array, size := []byte{'['}, 0
	for i, t := range c.texts[from:] {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, c.blocks[t.block]...)
		c.blocks[t.block] = nil
		size += t.size
	}
	array = append(array, ']')
	count := len(c.texts) - from
	e := newEntry(blockText{text: array, size: length(array)}, &records{array: array, count: count}, limit)
	c.after[c.texts[from].block] = e.notice(0, fmt.Sprintf("left out %d blocks of text (%d characters in all)", count, size))
	return e
}

// assemble is the result with the blocks as they are now.
func (c *contents) assemble(result json.RawMessage) json.RawMessage {
	content := json.RawMessage{'['}
	add := func(block json.RawMessage) {
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, block...)
	}
	for i, block := range c.blocks {
		if block != nil {
			add(block)
		}
		if notice := c.after[i]; notice != nil {
			add(textBlock(notice))
		}
	}
	return wire.SetMember(wire.DeleteMember(result, "structuredContent"), append(content, ']'), "content")
}

func textBlock(text []byte) json.RawMessage {
	return append(appendQuoted(json.RawMessage(`{"type":"text","text":`), text), '}')
}
