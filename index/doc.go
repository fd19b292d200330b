// Package index ranks items of the catalog for a query: BM25F over the fields
// of an item, by a query of our own that reads the postings of bleve's scorch
// index. Analysis, postings and files are bleve's; the scoring is ours, because
// bleve's own is TF-IDF, and its BM25 takes roots and squares where BM25 has
// none.
//
// [Open] gives the index of one immutable set of items. A small set is indexed
// in memory; a large one in a folder that is built once, aside, and then opened
// read-only by every process. Equal sets and equal queries rank equally in
// every process, whichever way the index came to be.
//
// A [Scorer] may be asked for a second opinion on the best hits; none is by
// default, and nothing leaves the process then.
//
// The package refuses to know who asks, what may be used, and who holds the
// lease under which a folder is built: it is given functions.
package index
