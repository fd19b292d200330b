package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	api "github.com/blevesearch/bleve_index_api"
)

// tables is what the scoring needs of all items and bleve does not keep.
type tables struct {
	// means are the mean lengths of the fields in terms.
	means [fieldCount]float64
	// names and servers are, by item, the sum of the rarity of the terms of its
	// name and of its server's.
	names, servers []float32
	// order says which item a document number of bleve stands for; bleve
	// numbers documents as it likes.
	order []uint32
	words *vocabulary
}

// rarity is the inverse document frequency of a term that found items have, of
// all.
func rarity(found, all int) float64 {
	return math.Log(1 + (float64(all-found)+0.5)/(float64(found)+0.5))
}

// measure fills all but the order.
func measure(entries []entry) *tables {
	t := &tables{names: make([]float32, len(entries)), servers: make([]float32, len(entries))}
	frequency := map[string]int{}
	where := map[string]uint8{}
	last := map[string]int{}
	for i, d := range entries {
		for f, terms := range d.terms {
			t.means[f] += float64(len(terms))
			for _, term := range terms {
				where[term] |= 1 << f
				if last[term] != i+1 {
					last[term] = i + 1
					frequency[term]++
				}
			}
		}
	}
	t.words = newVocabulary(where)
	for f := range t.means {
		t.means[f] = max(t.means[f]/float64(max(len(entries), 1)), 1)
	}
	round := 0
	clear(last)
	rare := func(terms []string) float32 {
		round++
		sum := 0.0
		for _, term := range terms {
			if last[term] != round {
				last[term] = round
				sum += rarity(frequency[term], len(entries))
			}
		}
		return float32(sum)
	}
	for i, d := range entries {
		t.names[i], t.servers[i] = rare(d.terms[fieldName]), rare(d.terms[fieldServer])
	}
	return t
}

// readOrder asks the index which document is which item.
func (t *tables) readOrder(reader api.IndexReader) error {
	count, err := reader.DocCount()
	if err != nil {
		return err
	}
	if count != uint64(len(t.names)) {
		return fmt.Errorf("index holds %d documents of %d", count, len(t.names))
	}
	t.order = make([]uint32, count)
	for number := range count {
		id, err := reader.ExternalID(api.NewIndexInternalID(nil, number))
		if err != nil {
			return err
		}
		item, err := strconv.Atoi(id)
		if err != nil || item < 0 || item >= len(t.names) {
			return fmt.Errorf("document %d has the id %q", number, id)
		}
		t.order[number] = uint32(item)
	}
	return nil
}

// encode gives the bytes that decodeTables reads.
func (t *tables) encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(t.names)))
	for _, mean := range t.means {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(mean))
	}
	for _, sums := range [][]float32{t.names, t.servers} {
		for _, sum := range sums {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(sum))
		}
	}
	for _, item := range t.order {
		b = binary.LittleEndian.AppendUint32(b, item)
	}
	return append(b, t.words.text...)
}

func decodeTables(b []byte) (*tables, error) {
	const head = 4 + 8*fieldCount
	if len(b) < head {
		return nil, errors.New("tables are cut short")
	}
	count := int(binary.LittleEndian.Uint32(b))
	if len(b) < head+12*count {
		return nil, errors.New("tables are cut short")
	}
	t := &tables{names: make([]float32, count), servers: make([]float32, count), order: make([]uint32, count)}
	for f := range t.means {
		t.means[f] = math.Float64frombits(binary.LittleEndian.Uint64(b[4+8*f:]))
	}
	for i := range count {
		t.names[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[head+4*i:]))
		t.servers[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[head+4*(count+i):]))
		t.order[i] = binary.LittleEndian.Uint32(b[head+4*(2*count+i):])
		if int(t.order[i]) >= count {
			return nil, errors.New("tables name an item that there is not")
		}
	}
	t.words = &vocabulary{text: string(b[head+12*count:])}
	return t, nil
}

// ready is an analyzer whose work is done: it gives the terms it holds.
type ready []string

// Analyze ignores its input.
func (r ready) Analyze([]byte) analysis.TokenStream {
	tokens := make([]analysis.Token, len(r))
	stream := make(analysis.TokenStream, len(r))
	for i, term := range r {
		tokens[i] = analysis.Token{Term: []byte(term), Position: i + 1}
		stream[i] = &tokens[i]
	}
	return stream
}

// bleve gives the document of the item at a place of the order.
func (d *entry) bleve(item int) *document.Document {
	doc := document.NewDocument(strconv.Itoa(item))
	add := func(label string, options api.FieldIndexingOptions, terms []string) {
		if len(terms) > 0 {
			doc.AddField(document.NewTextFieldCustom(label, nil, nil, options, ready(terms)))
		}
	}
	for f, field := range fields() {
		add(field.label, api.IndexField, d.terms[f])
	}
	add(pairField, api.IndexField|api.SkipFreqNorm, d.pairs)
	add(keyField, api.IndexField|api.SkipFreqNorm, d.keys)
	return doc
}
