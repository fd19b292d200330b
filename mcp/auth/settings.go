package auth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/mcp/catalog"
)

// everyServer stands for all servers in a list of names.
const everyServer = "*"

// Settings are what an agent token is made with.
type Settings struct {
	// Name is 1 to 64 letters, digits, - and _, and begins with a letter or a
	// digit.
	Name string
	// Servers are names, or "*" alone for every server. None denies everything.
	Servers []string
	// Tier is the highest tier of tools, see [ParsePermissions].
	Tier catalog.Tier
	// ExpiresAt is when it ends, at most [MaxLifetime] away; the zero time is
	// [DefaultLifetime] from now.
	ExpiresAt time.Time
	// Pin is the profile that it is bound to, "" for none.
	Pin string
}

// SettingError says which setting cannot be and why.
type SettingError struct {
	// Setting is its name on the command line and over REST: name, servers,
	// permissions, expires, profile_pin.
	Setting string
	// Rule says what it must be, as in "must include read".
	Rule string
}

// Error names the setting and the rule.
func (e *SettingError) Error() string { return e.Setting + ": " + e.Rule }

// ParsePermissions is the tier that a list of the words read, write and
// destructive permits. They are cumulative, and read must be among them. The
// error is a [*SettingError].
func ParsePermissions(words []string) (catalog.Tier, error) {
	highest, readable := catalog.Read, false
	for _, word := range words {
		tier, ok := tierOf(word)
		if !ok {
			return 0, &SettingError{"permissions", strconv.Quote(word) + " is none of read, write, destructive"}
		}
		highest, readable = max(highest, tier), readable || tier == catalog.Read
	}
	if !readable {
		return 0, &SettingError{"permissions", "must include read"}
	}
	return highest, nil
}

// Permissions are the words for a tier and those below it, in rising order.
func Permissions(highest catalog.Tier) []string {
	var words []string
	for tier := catalog.Read; tier <= highest; tier++ {
		words = append(words, tier.String())
	}
	return words
}

// tierOf is the tier of a word.
func tierOf(word string) (catalog.Tier, bool) {
	tier := catalog.ParseTier(word)
	return tier, tier.String() == word
}

// Check compares the settings with the servers and profiles that are
// configured. A pin to a profile that does not exist is a [*SettingError].
// A server that does not exist may be added later: that is a warning, in words
// for a person.
func (s Settings) Check(servers, profiles []string) (warnings []string, err error) {
	if s.Pin != "" && !slices.Contains(profiles, s.Pin) {
		rule := fmt.Sprintf("no profile %q is configured", s.Pin)
		if len(profiles) > 0 {
			rule += "; there are " + strings.Join(profiles, ", ")
		}
		return nil, &SettingError{"profile_pin", rule}
	}
	if len(s.Servers) == 0 {
		warnings = append(warnings, "without servers the token permits nothing")
	}
	for _, name := range s.Servers {
		if name != everyServer && !slices.Contains(servers, name) {
			warnings = append(warnings, fmt.Sprintf("no server %q is configured; the token permits it as soon as there is one", name))
		}
	}
	return warnings, nil
}

// valid returns the settings in their canonical form: servers sorted and named
// once, the expiry filled in.
func (s Settings) valid(now time.Time) (Settings, error) {
	if !validName(s.Name) {
		return s, &SettingError{"name", "must be 1 to 64 letters, digits, - or _, and begin with a letter or a digit"}
	}
	s.Servers = slices.Compact(slices.Sorted(slices.Values(s.Servers)))
	for _, name := range s.Servers {
		if name == everyServer && len(s.Servers) > 1 {
			return s, &SettingError{"servers", "* stands alone"}
		}
		if name != everyServer && !validName(name) {
			return s, &SettingError{"servers", strconv.Quote(name) + " is no name of a server"}
		}
	}
	if s.Tier < catalog.Read || s.Tier > catalog.Destructive {
		return s, &SettingError{"permissions", "must be of read, write, destructive"}
	}
	if s.ExpiresAt.IsZero() {
		s.ExpiresAt = now.Add(DefaultLifetime)
	}
	return s, checkExpiry(s.ExpiresAt, now)
}

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}
