package index

// The fields of an item, each with its own weight and its own mean length.
const (
	fieldName = iota
	fieldServer
	fieldHead // title and first sentence of the description
	fieldRest // rest of the description
	fieldParams
	fieldParamTexts
	fieldValues // enumerated values; words of a URI
	fieldAbout  // what the server says of itself
	fieldCount
)

// The two fields that are looked up and not scored by BM25F.
const (
	pairField = "pairs" // adjacent terms of name, head and rest
	keyField  = "keys"  // the names of the item in their plainest form
)

// field is how much a field counts (weight) and how much it counts less the
// longer it is (norm, 0 to 1).
type field struct {
	label        string
	weight, norm float64
}

func fields() [fieldCount]field {
	return [fieldCount]field{
		fieldName:       {"name", 3.5, 0.3},
		fieldServer:     {"server", 4, 0.8},
		fieldHead:       {"head", 3.5, 0.6},
		fieldRest:       {"description", 1, 0.6},
		fieldParams:     {"parameters", 2.5, 0.6},
		fieldParamTexts: {"parameter_descriptions", 0.4, 0.4},
		fieldValues:     {"values", 1, 0.75},
		fieldAbout:      {"server_description", 0.5, 0.5},
	}
}

// The settings of the scoring. The optimum is flat: none of them decides alone.
const (
	saturation    = 3.0  // k1 of BM25
	coveragePower = 0.5  // of the share of the query that an item answers
	clauseShare   = 0.3  // of the clause of a longer query that an item answers best
	nameShare     = 0.5  // of the share of an item's name that the query says
	serverShare   = 0.15 // of the share of its server's name that the query says
	pairWeight    = 0.8  // of two adjacent words of the query that are adjacent in the item
	repeated      = 0.3  // of the logarithm of how often the query says a word
	politeWeight  = 0.5  // of a word with which people ask, see polite
	synonymWeight = 0.4  // of a word of the same meaning
	relatedWeight = 0.25 // of a word of the same subject
	rarerAtMost   = 2.0  // times as rare as the word itself a synonym counts
	typoWeight    = 0.6  // of the likely meaning of an unknown word
	joinedWeight  = 0.5  // of two adjacent words written as one
	partWeight    = 0.8  // of the two halves of an unknown word
)
