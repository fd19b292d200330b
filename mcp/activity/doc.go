// Package activity keeps one record per call, without its secrets and for a
// limited time. It refuses to know whether a call was allowed, and never stands
// in its way.
//
// A [Recorder] takes records from the path of a call, where that costs one
// append to a queue. Its goroutine finds what is sensitive, masks it, cuts the
// payloads and writes in groups. It is owned by whoever opened it and ended by
// Close. [List], [Get] and [Summarize] read the log; a [Masker] finds and masks
// for others who need it.
//
// What is sensitive is found by tables and rules of this package. The known
// libraries for it run hundreds of regular expressions, many milliseconds for
// 64 KiB, and bring a large tree of packages; here one pass over the bytes
// leaves few places to look at closely.
package activity
