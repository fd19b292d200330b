package auth

import (
	"strconv"
	"strings"
	"time"
)

// DefaultLifetime is how long a token is valid where nothing else is said, and
// MaxLifetime is the longest that can be said.
const (
	DefaultLifetime = 30 * 24 * time.Hour
	MaxLifetime     = 365 * 24 * time.Hour
)

const expiryForms = "must be a time such as 30d, 12h, 1d12h, a day such as 2026-05-31, or a moment such as 2026-05-31T18:00:00Z"

// ParseExpiry understands when something ends: numbers with the units w, d, h,
// m or s from now on; a day, which it lasts through where now is; or a moment
// by RFC 3339. The moment is in the future and at most [MaxLifetime] away. The
// error is a [*SettingError].
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	at, ok := moment(strings.TrimSpace(text), now)
	if !ok {
		return time.Time{}, &SettingError{"expires", strconv.Quote(text) + ": " + expiryForms}
	}
	return at, checkExpiry(at, now)
}

func checkExpiry(at, now time.Time) error {
	switch left := at.Sub(now); {
	case left <= 0:
		return &SettingError{"expires", "must be in the future"}
	case left > MaxLifetime:
		return &SettingError{"expires", "must be at most 365d away"}
	}
	return nil
}

func moment(text string, now time.Time) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day.AddDate(0, 0, 1), true
	}
	d, ok := period(text)
	return now.Add(d), ok
}

// period sums numbers with units. What is too long to be allowed anyway is cut
// off at twice [MaxLifetime], far from where a Duration ends.
func period(text string) (sum time.Duration, ok bool) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	for text != "" {
		n := 0
		for n < len(text) && '0' <= text[n] && text[n] <= '9' {
			n++
		}
		if n == 0 || n == len(text) || units[text[n]] == 0 {
			return 0, false
		}
		unit := units[text[n]]
		count, err := strconv.ParseInt(text[:n], 10, 64)
		if most := int64(2 * MaxLifetime / unit); err != nil || count > most {
			count = most
		}
		sum = min(sum+time.Duration(count)*unit, 2*MaxLifetime)
		text, ok = text[n+1:], true
	}
	return sum, ok
}
