package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// Fingerprint names the connection of a server: 32 hexadecimal digits over
// command, args, env, working_dir, url, headers, oauth, protocol and isolation,
// as written, references unresolved. Two entries with one fingerprint start the
// same thing; nothing else of an entry changes it.
func (s *Server) Fingerprint() string {
	connection, err := json.Marshal(struct {
		Command    string            `json:"command,omitempty"`
		Args       []string          `json:"args,omitempty"`
		Env        map[string]string `json:"env,omitempty"`
		WorkingDir string            `json:"working_dir,omitempty"`
		URL        string            `json:"url,omitempty"`
		Headers    map[string]string `json:"headers,omitempty"`
		OAuth      *OAuth            `json:"oauth,omitempty"`
		Protocol   string            `json:"protocol,omitempty"`
		Isolation  *Isolation        `json:"isolation,omitempty"`
	}{s.Command, s.Args, s.Env, s.WorkingDir, s.URL, s.Headers, s.OAuth, s.Protocol, s.Isolation})
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	sum := sha256.Sum256(connection)
	return hex.EncodeToString(sum[:16])
}

// Changes is the difference between two configurations.
type Changes struct {
	// Added, Removed, Reconnect and Updated are names of servers, in the order
	// of the configuration they stand in. A server that is disabled or has an
	// Err counts as absent. Reconnect are those whose connection changed,
	// Updated those where only something else did.
	Added, Removed, Reconnect, Updated []string
	// Restart are the keys that changed and take effect at the next start only.
	Restart []string
}

// Diff tells what a reload has to do to get from old to new.
func Diff(old, new *Config) Changes {
	var ch Changes
	before, after := old.usable(), new.usable()
	for i := range old.Servers {
		s := &old.Servers[i]
		if before[s.Name] == s && after[s.Name] == nil {
			ch.Removed = append(ch.Removed, s.Name)
		}
	}
	for i := range new.Servers {
		s := &new.Servers[i]
		if after[s.Name] != s {
			continue
		}
		was := before[s.Name]
		switch {
		case was == nil:
			ch.Added = append(ch.Added, s.Name)
		case was.Fingerprint() != s.Fingerprint():
			ch.Reconnect = append(ch.Reconnect, s.Name)
		case !reflect.DeepEqual(was, s):
			ch.Updated = append(ch.Updated, s.Name)
		}
	}
	restart := []struct {
		key     string
		changed bool
	}{
		{"listen", old.Listen != new.Listen},
		{"data_dir", old.DataDir != new.DataDir},
		{"api_key", old.APIKey != new.APIKey},
		{"routing_mode", old.RoutingMode != new.RoutingMode},
		{"search_embedding", old.SearchEmbedding != new.SearchEmbedding},
	}
	for _, r := range restart {
		if r.changed {
			ch.Restart = append(ch.Restart, r.key)
		}
	}
	return ch
}

// usable are the servers that can be connected, by name.
func (c *Config) usable() map[string]*Server {
	m := make(map[string]*Server, len(c.Servers))
	for i := range c.Servers {
		if s := &c.Servers[i]; s.Enabled && s.Err == nil {
			m[s.Name] = s
		}
	}
	return m
}
