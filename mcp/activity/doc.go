// Package activity keeps one record per call, without its secrets and for a
// limited time. It refuses to know whether a call was allowed, and never stands
// in its way. It holds no code yet.
package activity
