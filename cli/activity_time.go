package cli

import (
	"strconv"
	"time"
)

// pastMoment understands when something was: a time before now, which is a Go
// duration or a number of days (7d) or weeks (2w); the beginning of a day where
// now is; a moment by RFC 3339.
func pastMoment(text string, now time.Time) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, true
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), true
	}
	if len(text) < 2 {
		return time.Time{}, false
	}
	days, err := strconv.ParseUint(text[:len(text)-1], 10, 16)
	switch unit := text[len(text)-1]; {
	case err != nil:
		return time.Time{}, false
	case unit == 'd':
		return now.AddDate(0, 0, -int(days)), true
	case unit == 'w':
		return now.AddDate(0, 0, -7*int(days)), true
	}
	return time.Time{}, false
}
