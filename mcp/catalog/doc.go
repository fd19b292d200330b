// Package catalog knows what upstream servers offer and how it is named to
// clients: items with their raw definitions, their tier, an immutable
// [Snapshot] of all of them, and the public [Names].
//
// It refuses to know how items are fetched or stored, who may use them, and
// what a call is.
package catalog
