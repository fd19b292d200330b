package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

const nameRule = "must be 1 to 64 letters, digits, - or _, without __ and without _ at either end"

// ValidName reports whether name can be the name of a server, an alias or a
// profile: a letter or digit, then letters, digits, - and _, 64 bytes at most,
// without "__" and without "_" at the end.
func ValidName(name string) bool {
	if name == "" || len(name) > 64 || strings.Contains(name, "__") || name[len(name)-1] == '_' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// field is one key and where its value goes. Exactly one of set and take is set.
type field struct {
	key  string                                              // "tools_limit", "logging.level"
	set  func(scalar) (rule string)                          // a single value; also from the environment
	take func(d *decoder, key string, v *hujson.Value) error // a list or an object
}

// scalar is one JSON string, number or boolean. kind is 0 for text from the
// environment or a flag, which may stand for any of them.
type scalar struct {
	kind hujson.Kind
	text string
}

func text(p *string) func(scalar) string {
	return func(s scalar) string {
		if s.kind != '"' && s.kind != 0 {
			return "must be a string"
		}
		*p = s.text
		return ""
	}
}

func boolean(p *bool) func(scalar) string {
	return func(s scalar) string {
		v, err := strconv.ParseBool(s.text)
		if err != nil || (s.kind != 't' && s.kind != 'f' && s.kind != 0) {
			return "must be true or false"
		}
		*p = v
		return ""
	}
}

func integer(p *int, low, high int) func(scalar) string {
	return func(s scalar) string {
		v, err := strconv.Atoi(s.text)
		if err != nil || (s.kind != '0' && s.kind != 0) || v < low || v > high {
			return "must be a whole number from " + strconv.Itoa(low) + " to " + strconv.Itoa(high)
		}
		*p = v
		return ""
	}
}

// duration takes "30s". A zero, which switches off what the key is about, is
// allowed when zero is true.
func duration(p *time.Duration, zero bool, low, high time.Duration) func(scalar) string {
	return func(s scalar) string {
		v, err := time.ParseDuration(s.text)
		if err == nil && (s.kind == '"' || s.kind == 0) && (v >= low && v <= high || zero && v == 0) {
			*p = v
			return ""
		}
		rule := `must be a duration such as "30s", from ` + short(low) + " to " + short(high)
		if zero {
			rule += `, or "0s"`
		}
		return rule
	}
}

// short is a duration without the trailing zeros of String: "1h", not "1h0m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func oneOf(p *string, values ...string) func(scalar) string {
	return func(s scalar) string {
		if s.kind != '"' && s.kind != 0 || !slices.Contains(values, s.text) {
			return "must be one of " + strings.Join(values, ", ")
		}
		*p = s.text
		return ""
	}
}

// autoBool takes true, false and "auto".
func autoBool(p *string) func(scalar) string {
	return func(s scalar) string {
		if s.text != "true" && s.text != "false" && s.text != "auto" {
			return `must be true, false or "auto"`
		}
		*p = s.text
		return ""
	}
}

func address(p *string) func(scalar) string {
	return func(s scalar) string {
		_, port, err := net.SplitHostPort(s.text)
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 || (s.kind != '"' && s.kind != 0) {
			return `must be an address such as "127.0.0.1:8080"`
		}
		*p = s.text
		return ""
	}
}

func milliseconds(p *time.Duration, low, high int) func(scalar) string {
	return func(s scalar) string {
		var n int
		rule := integer(&n, low, high)(s)
		if rule == "" {
			*p = time.Duration(n) * time.Millisecond
		}
		return rule
	}
}

// defaults is the configuration without a file. Limits of -1 are not set yet.
func defaults() *Config {
	return &Config{
		Settings: Settings{
			HealthCheckInterval:   30 * time.Second,
			ToolDiscoveryInterval: 5 * time.Minute,
			InitTimeout:           time.Minute,
			CallToolTimeout:       10 * time.Minute,
			InheritEnv:            "base",
			UnannotatedTools:      "destructive",
			ExposeResources:       true,
			ExposePrompts:         true,
		},
		Listen:                   "127.0.0.1:8080",
		DataDir:                  "~/.mcpproxy",
		EnableSocket:             true,
		ShareUpstreams:           true,
		HubIdleTimeout:           30 * time.Second,
		RoutingMode:              "retrieve_tools",
		ToolResponseMode:         "full",
		DirectToolResponseMode:   "full",
		ToolsLimit:               15,
		ToolResponseLimit:        20000,
		MaxResultSizeChars:       500000,
		SchemaCompat:             "auto",
		EnableCodeExecution:      true,
		CodeExecutionTimeout:     2 * time.Minute,
		CodeExecutionPoolSize:    10,
		CodeExecutionMaxParallel: 8,
		CodeExecutionMemoryMB:    256,
		QuarantineEnabled:        true,
		DisableManagement:        true,
		AdvertiseUpstreamServers: true,
		StrictServerValidation:   true,
		EnableWebUI:              true,
		OutputSanitisation:       OutputSanitisation{SensitiveData: "off"},
		ActivityRetentionDays:    90,
		ActivityMaxRecords:       100000,
		ActivityMaxPayload:       4096,
		ActivityMaxSizeMB:        256,
		PagesMaxSizeMB:           256,
		SearchEmbedding:          SearchEmbedding{Weight: 50},
		LogLevel:                 "warn",
		LogFile:                  "auto",
		serverLimits:             Limits{-1, -1, -1},
	}
}

// fields are the keys at the top of the file.
func (c *Config) fields() []field {
	const many = 1 << 30
	ignore := func(*decoder, string, *hujson.Value) error { return nil }
	own := []field{
		{key: "$schema", take: ignore},
		{key: "mcpServers", take: ignore}, // read when everything else is known
		{key: "listen", set: address(&c.Listen)},
		{key: "data_dir", set: text(&c.DataDir)},
		{key: "api_key", set: text(&c.APIKey)},
		{key: "enable_socket", set: boolean(&c.EnableSocket)},
		{key: "share_upstreams", set: boolean(&c.ShareUpstreams)},
		{key: "hub_idle_timeout", set: duration(&c.HubIdleTimeout, true, time.Millisecond, 24*time.Hour)},
		{key: "routing_mode", set: oneOf(&c.RoutingMode, "retrieve_tools", "direct", "code_execution", "proxy")},
		{key: "tool_response_mode", set: oneOf(&c.ToolResponseMode, "full", "compact")},
		{key: "direct_tool_response_mode", set: oneOf(&c.DirectToolResponseMode, "full", "deferred")},
		{key: "direct_truncate", set: boolean(&c.DirectTruncate)},
		{key: "tools_limit", set: integer(&c.ToolsLimit, 1, 100)},
		{key: "tool_response_limit", set: integer(&c.ToolResponseLimit, 0, many)},
		{key: "max_result_size_chars", set: integer(&c.MaxResultSizeChars, 1, many)},
		{key: "max_tool_name_length", set: integer(&c.MaxToolNameLength, 16, 128)},
		{key: "schema_compat", set: oneOf(&c.SchemaCompat, "auto", "strict", "off")},
		{key: "enable_code_execution", set: boolean(&c.EnableCodeExecution)},
		{key: "code_execution_timeout_ms", set: milliseconds(&c.CodeExecutionTimeout, 1, 600000)},
		{key: "code_execution_max_tool_calls", set: integer(&c.CodeExecutionMaxToolCalls, 0, many)},
		{key: "code_execution_pool_size", set: integer(&c.CodeExecutionPoolSize, 1, 100)},
		{key: "code_execution_max_parallel", set: integer(&c.CodeExecutionMaxParallel, 1, 32)},
		{key: "code_execution_memory_mb", set: integer(&c.CodeExecutionMemoryMB, 16, 65536)},
		{key: "code_catalog_limit", set: integer(&c.CodeCatalogLimit, 1, many)},
		{key: "quarantine_enabled", set: boolean(&c.QuarantineEnabled)},
		{key: "require_mcp_auth", set: boolean(&c.RequireMCPAuth)},
		{key: "trusted_hosts", take: textList(&c.TrustedHosts)},
		{key: "read_only_mode", set: boolean(&c.ReadOnlyMode)},
		{key: "disable_management", set: boolean(&c.DisableManagement)},
		{key: "instructions", set: text(&c.Instructions)},
		{key: "advertise_upstream_servers", set: boolean(&c.AdvertiseUpstreamServers)},
		{key: "intent_declaration.strict_server_validation", set: boolean(&c.StrictServerValidation)},
		{key: "search_embedding.url", set: text(&c.SearchEmbedding.URL)},
		{key: "search_embedding.model", set: text(&c.SearchEmbedding.Model)},
		{key: "search_embedding.api_key", set: text(&c.SearchEmbedding.Key)},
		{key: "search_embedding.weight", set: integer(&c.SearchEmbedding.Weight, 0, 100)},
		{key: "features.enable_web_ui", set: boolean(&c.EnableWebUI)},
		{key: "profiles", take: c.takeProfiles},
		{key: "output_sanitisation.strip_control", set: boolean(&c.OutputSanitisation.StripControl)},
		{key: "output_sanitisation.mark_untrusted", set: boolean(&c.OutputSanitisation.MarkUntrusted)},
		{key: "output_sanitisation.sensitive_data", set: oneOf(&c.OutputSanitisation.SensitiveData, "off", "redact", "block")},
		{key: "activity_retention_days", set: integer(&c.ActivityRetentionDays, 0, many)},
		{key: "activity_max_records", set: integer(&c.ActivityMaxRecords, 0, many)},
		{key: "activity_max_payload", set: integer(&c.ActivityMaxPayload, 0, many)},
		{key: "activity_max_size_mb", set: integer(&c.ActivityMaxSizeMB, 1, many)},
		{key: "pages_max_size_mb", set: integer(&c.PagesMaxSizeMB, 1, many)},
		{key: "logging.level", set: oneOf(&c.LogLevel, "debug", "info", "warn", "error")},
		{key: "logging.file", set: autoBool(&c.LogFile)},
	}
	own = append(own, c.Settings.fields()...)
	return append(own, c.serverLimits.fields("server_concurrency_defaults.")...)
}

func (s *Settings) fields() []field {
	return append(s.Limits.fields(""),
		field{key: "health_check_interval", set: duration(&s.HealthCheckInterval, true, 5*time.Second, time.Hour)},
		field{key: "tool_discovery_interval", set: duration(&s.ToolDiscoveryInterval, true, 30*time.Second, 24*time.Hour)},
		field{key: "init_timeout", set: duration(&s.InitTimeout, false, time.Millisecond, time.Hour)},
		field{key: "call_tool_timeout", set: duration(&s.CallToolTimeout, true, time.Millisecond, 24*time.Hour)},
		field{key: "call_idle_timeout", set: duration(&s.CallIdleTimeout, true, time.Millisecond, 24*time.Hour)},
		field{key: "inherit_env", set: oneOf(&s.InheritEnv, "base", "all")},
		field{key: "unannotated_tools", set: oneOf(&s.UnannotatedTools, "destructive", "write", "read")},
		field{key: "expose_resources", set: boolean(&s.ExposeResources)},
		field{key: "expose_prompts", set: boolean(&s.ExposePrompts)},
	)
}

func (l *Limits) fields(prefix string) []field {
	return []field{
		{key: prefix + "max_concurrent_requests", set: integer(&l.MaxConcurrentRequests, 0, 1<<20)},
		{key: prefix + "queue_size", set: integer(&l.QueueSize, 0, 1<<20)},
		{key: prefix + "queue_timeout", set: duration(&l.QueueTimeout, true, time.Millisecond, time.Hour)},
	}
}

// inheritLimits fills what server_concurrency_defaults leaves open with the
// limits of the instance.
func (c *Config) inheritLimits() {
	if c.serverLimits.MaxConcurrentRequests < 0 {
		c.serverLimits.MaxConcurrentRequests = c.MaxConcurrentRequests
	}
	if c.serverLimits.QueueSize < 0 {
		c.serverLimits.QueueSize = c.QueueSize
	}
	if c.serverLimits.QueueTimeout < 0 {
		c.serverLimits.QueueTimeout = c.QueueTimeout
	}
}
