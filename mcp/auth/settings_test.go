package auth

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/catalog"
)

func TestParsePermissions(t *testing.T) {
	for list, want := range map[string]string{
		"read":                     "read",
		"read,write":               "read write",
		"write,read":               "read write",
		"read,destructive":         "read write destructive", // cumulative
		"read,write,destructive":   "read write destructive",
		"read,read":                "read",
		"":                         "must include read",
		"write":                    "must include read",
		"destructive,write":        "must include read",
		"read,admin":               `"admin" is none of`,
		"read,":                    `"" is none of`,
		"Read":                     `"Read" is none of`,
		"read,write,destructive,*": `"*" is none of`,
	} {
		var words []string
		if list != "" {
			words = strings.Split(list, ",")
		}
		tier, err := ParsePermissions(words)
		got := strings.Join(Permissions(tier), " ")
		if err != nil {
			var wrong *SettingError
			if !errors.As(err, &wrong) || wrong.Setting != "permissions" || tier != catalog.Read {
				t.Errorf("%q: %v, %v", list, tier, err)
			}
			got = err.Error()
		}
		if !strings.Contains(got, want) || err == nil && got != want {
			t.Errorf("%q: %s", list, got)
		}
	}
}

func TestSettings(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		settings Settings
		wrong    string // the setting, "" for none
	}{
		"least":           {Settings{Name: "a"}, ""},
		"longest name":    {Settings{Name: strings.Repeat("a", 64)}, ""},
		"all in the name": {Settings{Name: "0-_aZ__"}, ""},
		"no name":         {Settings{}, "name"},
		"too long":        {Settings{Name: strings.Repeat("a", 65)}, "name"},
		"dash first":      {Settings{Name: "-a"}, "name"},
		"underscore":      {Settings{Name: "_a"}, "name"},
		"a path":          {Settings{Name: "a/b"}, "name"},
		"a letter":        {Settings{Name: "ä"}, "name"},
		"a newline":       {Settings{Name: "a\n"}, "name"},
		"star":            {Settings{Name: "a", Servers: []string{"*"}}, ""},
		"star among":      {Settings{Name: "a", Servers: []string{"*", "b"}}, "servers"},
		"empty server":    {Settings{Name: "a", Servers: []string{""}}, "servers"},
		"odd server":      {Settings{Name: "a", Servers: []string{"b*"}}, "servers"},
		"tier":            {Settings{Name: "a", Tier: catalog.Destructive + 1}, "permissions"},
		"negative tier":   {Settings{Name: "a", Tier: -1}, "permissions"},
		"past":            {Settings{Name: "a", ExpiresAt: now}, "expires"},
		"a year":          {Settings{Name: "a", ExpiresAt: now.Add(MaxLifetime)}, ""},
		"longer":          {Settings{Name: "a", ExpiresAt: now.Add(MaxLifetime + 1)}, "expires"},
	} {
		_, err := c.settings.valid(now)
		var wrong *SettingError
		if errors.As(err, &wrong) != (c.wrong != "") || c.wrong != "" && wrong.Setting != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := Settings{Name: "a", Servers: []string{"c", "b", "c"}}.valid(now)
	if want := (Settings{Name: "a", Servers: []string{"b", "c"}, ExpiresAt: now.Add(DefaultLifetime)}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCheck(t *testing.T) {
	servers, profiles := []string{"a", "b"}, []string{"work", "home"}
	for name, c := range map[string]struct {
		settings Settings
		warnings int
		wrong    string
	}{
		"known":       {Settings{Servers: []string{"a"}, Pin: "home"}, 0, ""},
		"all":         {Settings{Servers: []string{"*"}}, 0, ""},
		"nothing":     {Settings{}, 1, ""},
		"two unknown": {Settings{Servers: []string{"a", "c", "d"}}, 2, ""},
		"no profile":  {Settings{Servers: []string{"a"}, Pin: "x"}, 0, `no profile "x" is configured; there are work, home`},
	} {
		warnings, err := c.settings.Check(servers, profiles)
		if len(warnings) != c.warnings {
			t.Errorf("%s: %q", name, warnings)
		}
		var wrong *SettingError
		if errors.As(err, &wrong) != (c.wrong != "") || c.wrong != "" && wrong.Rule != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
