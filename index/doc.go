// Package index ranks items of the catalog for a query. It refuses to know who
// asks and whether the item may be used. It holds no code yet.
package index
