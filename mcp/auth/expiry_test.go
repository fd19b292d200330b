package auth

import (
	"errors"
	"testing"
	"time"
)

func TestParseExpiry(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, zone)
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "12h": 12 * time.Hour, "90m": 90 * time.Minute, "1s": time.Second, "2w": 14 * day, "1d12h": 36 * time.Hour,
		" 1d ": day, "365d": 365 * day, "007d": 7 * day,
		"2026-03-01":           12 * time.Hour, // what is left of today
		"2026-03-02":           36 * time.Hour,
		"2026-03-01T11:00:00Z": time.Hour, "2026-03-01T13:00:00+02:00": time.Hour,
	} {
		if at, err := ParseExpiry(text, now); err != nil || at.Sub(now) != want {
			t.Errorf("%q: %v (%v), %v", text, at, at.Sub(now), err)
		}
	}
	for _, text := range []string{
		"", "d", "30", "30 d", "-1d", "1.5d", "1y", "d30", "1d-1h", "0d", "0s", "366d", "365d1s", "99999999999999999999d", "9223372036854775807w",
		"1d9223372036854775807s", "2026-02-28", "2027-03-02", "2026-13-01", "2026-03-01T10:00:00Z", "never", "٣d",
	} {
		at, err := ParseExpiry(text, now)
		var wrong *SettingError
		if !errors.As(err, &wrong) || wrong.Setting != "expires" {
			t.Errorf("%q: %v, %v", text, at, err)
		}
	}
}

// FuzzParseExpiry: what is understood lies within the bounds.
func FuzzParseExpiry(f *testing.F) {
	for _, seed := range []string{"30d", "1w2d3h4m5s", "2026-05-31", "2026-05-31T00:00:00Z", "99999999999999999999w1s", "", "-1d"} {
		f.Add(seed)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseExpiry(text, now)
		if err == nil && (!at.After(now) || at.Sub(now) > MaxLifetime) {
			t.Errorf("%q is %v", text, at)
		}
	})
}
