package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// parse reads text as the file /home/u/.mcpproxy/mcp_config.json.
func parse(t *testing.T, text string, environ ...string) *Config {
	t.Helper()
	c, err := Parse([]byte(text), LoadOptions{Home: "/home/u", Dir: "/cwd", Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	c, err := Parse(nil, LoadOptions{Home: "/home/u", Dir: "/cwd"})
	if err != nil {
		t.Fatal(err)
	}
	same := parse(t, "{}")
	same.Exists, same.source = false, ""
	if !reflect.DeepEqual(c, same) {
		t.Error("a missing file and {} differ")
	}
	for _, check := range []struct {
		key       string
		got, want any
	}{
		{"Path", c.Path, "/home/u/.mcpproxy/mcp_config.json"},
		{"data_dir", c.DataDir, "/home/u/.mcpproxy"},
		{"listen", c.Listen, "127.0.0.1:8080"},
		{"api_key", c.APIKey, ""},
		{"enable_socket", c.EnableSocket, true},
		{"routing_mode", c.RoutingMode, "retrieve_tools"},
		{"tool_response_mode", c.ToolResponseMode, "full"},
		{"direct_tool_response_mode", c.DirectToolResponseMode, "full"},
		{"tools_limit", c.ToolsLimit, 15},
		{"search_embedding", c.SearchEmbedding, SearchEmbedding{Weight: 50}},
		{"tool_response_limit", c.ToolResponseLimit, 20000},
		{"max_result_size_chars", c.MaxResultSizeChars, 500000},
		{"health_check_interval", c.HealthCheckInterval, 30 * time.Second},
		{"tool_discovery_interval", c.ToolDiscoveryInterval, 5 * time.Minute},
		{"init_timeout", c.InitTimeout, time.Minute},
		{"call_tool_timeout", c.CallToolTimeout, 10 * time.Minute},
		{"call_idle_timeout", c.CallIdleTimeout, time.Duration(0)},
		{"enable_code_execution", c.EnableCodeExecution, true},
		{"code_execution_timeout_ms", c.CodeExecutionTimeout, 120 * time.Second},
		{"code_execution_max_tool_calls", c.CodeExecutionMaxToolCalls, 0},
		{"code_execution_pool_size", c.CodeExecutionPoolSize, 10},
		{"code_execution_max_parallel", c.CodeExecutionMaxParallel, 8},
		{"code_execution_memory_mb", c.CodeExecutionMemoryMB, 256},
		{"code_catalog_limit", c.CodeCatalogLimit, 0},
		{"inherit_env", c.InheritEnv, "base"},
		{"share_upstreams", c.ShareUpstreams, true},
		{"hub_idle_timeout", c.HubIdleTimeout, 30 * time.Second},
		{"unannotated_tools", c.UnannotatedTools, "destructive"},
		{"schema_compat", c.SchemaCompat, "auto"},
		{"expose_resources", c.ExposeResources, true},
		{"expose_prompts", c.ExposePrompts, true},
		{"direct_truncate", c.DirectTruncate, false},
		{"quarantine_enabled", c.QuarantineEnabled, true},
		{"require_mcp_auth", c.RequireMCPAuth, false},
		{"read_only_mode", c.ReadOnlyMode, false},
		{"disable_management", c.DisableManagement, true},
		{"advertise_upstream_servers", c.AdvertiseUpstreamServers, true},
		{"strict_server_validation", c.StrictServerValidation, true},
		{"max_concurrent_requests", c.MaxConcurrentRequests, 0},
		{"output_sanitisation", c.OutputSanitisation, OutputSanitisation{SensitiveData: "off"}},
		{"activity_retention_days", c.ActivityRetentionDays, 90},
		{"activity_max_records", c.ActivityMaxRecords, 100000},
		{"activity_max_payload", c.ActivityMaxPayload, 4096},
		{"activity_max_size_mb", c.ActivityMaxSizeMB, 256},
		{"pages_max_size_mb", c.PagesMaxSizeMB, 256},
		{"logging.level", c.LogLevel, "warn"},
		{"logging.file", c.LogFile, "auto"},
		{"enable_web_ui", c.EnableWebUI, true},
	} {
		if check.got != check.want {
			t.Errorf("%s: got %v, want %v", check.key, check.got, check.want)
		}
	}
}

// The example of the reference documentation, with comments and a trailing comma.
func TestCompleteFile(t *testing.T) {
	c := parse(t, "\xef\xbb\xbf"+strings.ReplaceAll(`{
  // where serve listens
  "listen": "127.0.0.1:8081",
  "data_dir": "~/data",
  "api_key": "your-secret-api-key",
  "enable_socket": true,
  "health_check_interval": "1m",
  "tool_discovery_interval": "0s",
  "tools_limit": 20, /* more */
  "enable_code_execution": false,
  "code_execution_timeout_ms": 5000,
  "features": {"enable_web_ui": false,},
  "logging": {"level": "debug", "file": true},
  "intent_declaration": {"strict_server_validation": false},
  "output_sanitisation": {"strip_control": true, "mark_untrusted": true, "sensitive_data": "redact"},
  "trusted_hosts": ["proxy.example"],
  "api_keys": 1,
  "profiles": [{"name": "work", "servers": ["chatty"], "max_tier": "read"}],
  "mcpServers": [
    {"name": "chatty", "command": "x", "health_check_interval": "2m"},
  ],
}
`, "\n", "\r\n"))
	if c.Listen != "127.0.0.1:8081" || c.DataDir != "/home/u/data" || c.APIKey != "your-secret-api-key" ||
		c.ToolsLimit != 20 || c.EnableCodeExecution || c.CodeExecutionTimeout != 5*time.Second || c.EnableWebUI ||
		c.LogLevel != "debug" || c.LogFile != "true" || c.StrictServerValidation || len(c.TrustedHosts) != 1 ||
		c.OutputSanitisation != (OutputSanitisation{true, true, "redact"}) {
		t.Errorf("values are lost: %+v", c)
	}
	if want := []Profile{{"work", []string{"chatty"}, "read"}}; !reflect.DeepEqual(c.Profiles, want) {
		t.Errorf("profiles: %v", c.Profiles)
	}
	s := c.Server("chatty")
	if s.HealthCheckInterval != 2*time.Minute || s.ToolDiscoveryInterval != 0 {
		t.Errorf("intervals of the server: %v, %v", s.HealthCheckInterval, s.ToolDiscoveryInterval)
	}
	want := []string{`/home/u/.mcpproxy/mcp_config.json:17:3: unknown key "api_keys"`}
	if !reflect.DeepEqual(c.Warnings, want) {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// What fails the whole load, with its place and its rule.
func TestFileErrors(t *testing.T) {
	utf16LE := func(s string) string {
		b := []byte{0xff, 0xfe}
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	for name, test := range map[string]struct{ text, want string }{
		"syntax":            {"{\n  \"ä\": 1 \"b\": 2}", ":2:10: not valid JSON: invalid character '\"' after object value"},
		"cut off":           {`{"mcpServers": [`, ":1:17: not valid JSON: the file ends too early"},
		"two values":        {"{}\n{}", ":2:1: not valid JSON: invalid character '{' after top-level value"},
		"empty":             {" \n", ": the file is empty"},
		"utf-16":            {utf16LE("{}"), ": the file is encoded as UTF-16; save it as UTF-8"},
		"utf-16 no mark":    {utf16LE("{}")[2:], ": the file is encoded as UTF-16; save it as UTF-8"},
		"latin-1":           {"{\n \"instructions\": \"f\xfcr\"}", ":2:20: the file is not encoded as UTF-8"},
		"list on top":       {`[]`, `:1:1: the top of the file must be an object, {"mcpServers": …}, not a list`},
		"servers a string":  {`{"mcpServers": "a"}`, ":1:16: mcpServers: must be a list of servers or an object of them by name, not a string"},
		"number as string":  {`{"tools_limit": "15"}`, `:1:17: tools_limit: "15": must be a whole number from 1 to 100`},
		"out of range":      {"{\n\t\"tools_limit\": 500\n}", ":2:17: tools_limit: 500: must be a whole number from 1 to 100"},
		"fraction":          {`{"tools_limit": 1.5}`, "tools_limit: 1.5: must be a whole number"},
		"boolean":           {`{"enable_socket": "yes"}`, `enable_socket: "yes": must be true or false`},
		"mode":              {`{"routing_mode": "all"}`, `routing_mode: "all": must be one of retrieve_tools, direct, code_execution, proxy`},
		"short interval":    {`{"health_check_interval": "1s"}`, `health_check_interval: "1s": must be a duration such as "30s", from 5s to 1h, or "0s"`},
		"long interval":     {`{"tool_discovery_interval": "25h"}`, `from 30s to 24h, or "0s"`},
		"interval a number": {`{"health_check_interval": 30}`, `30: must be a duration`},
		"address":           {`{"listen": "8080"}`, `listen: "8080": must be an address such as`},
		"nested":            {`{"features": {"enable_web_ui": 1}}`, `:1:32: features.enable_web_ui: 1: must be true or false`},
		"nested choice":     {`{"output_sanitisation": {"sensitive_data": "mask"}}`, `output_sanitisation.sensitive_data: "mask": must be one of off, redact, block`},
		"nested unknown":    {`{"output_sanitisation": true}`, `:1:25: output_sanitisation: must be an object, not a boolean`},
		"group":             {`{"logging": "debug"}`, `logging: must be an object, not a string`},
		"profile":           {`{"profiles": [{"name": "a b"}]}`, `:1:15: profiles[0].name: must be 1 to 64 letters`},
		"profile twice":     {`{"profiles": [{"name": "a"}, {"name": "a"}]}`, `profiles[1].name: there are two profiles named "a"`},
		"tier":              {`{"profiles": [{"name": "a", "max_tier": "all"}]}`, `profiles[0].max_tier: "all": must be one of read, write, destructive`},
		"auto":              {`{"logging": {"file": "x.log"}}`, `logging.file: "x.log": must be true, false or "auto"`},
		"long value":        {`{"routing_mode": "` + strings.Repeat("m", 100) + `"}`, strings.Repeat("m", 59) + "…: must be one of"},
		"secret value":      {`{"api_key": 4711}`, `api_key: ****: must be a string`},
		"depth":             {strings.Repeat("[", maxBrackets+1), "has more than 20000 brackets"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(test.text), LoadOptions{Home: "/h", Path: "/etc/x.json"})
			var e *Error
			if !errors.As(err, &e) || c != nil {
				t.Fatalf("got %v, %v", c, err)
			}
			if got := err.Error(); !strings.HasPrefix(got, "/etc/x.json") || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestErrorNeverShowsBareSecret(t *testing.T) {
	for _, text := range []string{
		`{"api_key": hunter2secret}`,
		`{"mcpServers": [{"name": "a", "command": "x", "env": "TOKEN=hunter2secret"}]}`,
		`{"mcpServers": [{"name": "a", "command": "x", "env": {"TOKEN": ["hunter2secret"]}}]}`,
		`{"mcpServers": [{"name": "a", "command": "x", "args": "--token hunter2secret"}]}`,
		`{"mcpServers": [{"name": "a", "url": "https://x", "oauth": "hunter2secret"}]}`,
		`{"mcpServers": [{"name": "a", "url": "x://hunter2secret"}]}`,
		`{"mcpServers": {"a": "hunter2secret"}}`,
	} {
		c, err := Parse([]byte(text), LoadOptions{Home: "/h"})
		if err == nil {
			err = c.Servers[0].Err
		}
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := `{"tools_limit": 20, "logging": {"level": "info"}, "routing_mode": "direct", "data_dir": "d", "listen": "127.0.0.1:1"}`
	opts := LoadOptions{Home: "/home/u", Dir: "/cwd", Path: "/etc/m/c.json"}

	c, err := Parse([]byte(file), opts)
	if err != nil {
		t.Fatal(err)
	}
	if c.ToolsLimit != 20 || c.LogLevel != "info" || c.RoutingMode != "direct" || c.DataDir != "/etc/m/d" || c.Listen != "127.0.0.1:1" {
		t.Errorf("file over default: %+v", c)
	}

	opts.Environ = []string{
		"MCPPROXY_CONFIG=/elsewhere.json", "MCPPROXY_TOOLS_LIMIT=30", "MCPPROXY_LOGGING_LEVEL=error",
		"MCPPROXY_ROUTING_MODE=proxy", "MCPPROXY_DATA_DIR=e", "MCPPROXY_LISTEN=127.0.0.1:2",
		"MCPPROXY_FEATURES_ENABLE_WEB_UI=false", "MCPPROXY_HEALTH_CHECK_INTERVAL=0s", "MCPPROXY_API_KEY=",
		"MCPPROXY_SERVER_CONCURRENCY_DEFAULTS_QUEUE_SIZE=3",
	}
	if c, err = Parse([]byte(file), opts); err != nil {
		t.Fatal(err)
	}
	if c.Path != "/etc/m/c.json" || c.ToolsLimit != 30 || c.LogLevel != "error" || c.RoutingMode != "proxy" || c.DataDir != "/cwd/e" ||
		c.Listen != "127.0.0.1:2" || c.EnableWebUI || c.HealthCheckInterval != 0 || c.serverLimits.QueueSize != 3 {
		t.Errorf("environment over file: %+v", c)
	}

	opts.LogLevel, opts.Mode, opts.DataDir, opts.Listen, opts.Path = "debug", "code_execution", "~/f", "[::1]:3", "g.json"
	if c, err = Parse([]byte(file), opts); err != nil {
		t.Fatal(err)
	}
	if c.Path != "/cwd/g.json" || c.LogLevel != "debug" || c.RoutingMode != "code_execution" || c.DataDir != "/home/u/f" || c.Listen != "[::1]:3" {
		t.Errorf("flag over environment: %+v", c)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	for variable, want := range map[string]string{
		"MCPPROXY_TOOLS_LIMIT=many":             "environment: MCPPROXY_TOOLS_LIMIT: many: must be a whole number from 1 to 100",
		"MCPPROXY_FEATURES_ENABLE_WEB_UI=maybe": "environment: MCPPROXY_FEATURES_ENABLE_WEB_UI: maybe: must be true or false",
		"MCPPROXY_INIT_TIMEOUT=60":              "environment: MCPPROXY_INIT_TIMEOUT: 60: must be a duration",
	} {
		_, err := Parse(nil, LoadOptions{Home: "/h", Environ: []string{variable}})
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", variable, err)
		}
	}
	_, err := Parse(nil, LoadOptions{Home: "/h", Mode: "all"})
	if err == nil || !strings.HasPrefix(err.Error(), "command line: --mode: all: must be one of") {
		t.Errorf("flag: %v", err)
	}
}

func TestLoad(t *testing.T) {
	home := t.TempDir()
	opts := LoadOptions{Home: home, Dir: home}
	c, err := Load(opts)
	if err != nil || c.Exists || len(c.Servers) != 0 {
		t.Fatalf("missing file: %v, %v", c, err)
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 0 {
		t.Fatalf("loading wrote something: %v, %v", entries, err)
	}

	path := filepath.Join(home, "other.json")
	write(t, path, `{"mcpServers": {"a": {"command": "x"}}}`)
	opts.Environ = []string{"MCPPROXY_CONFIG=" + path}
	if c, err = Load(opts); err != nil || !c.Exists || c.Path != path || c.Server("a") == nil {
		t.Fatalf("file from the environment: %v, %v", c, err)
	}

	opts.Path = home
	var e *Error
	if _, err = Load(opts); !errors.As(err, &e) || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	_, err = Load(LoadOptions{})
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "home folder is not known") {
		t.Errorf("no home: %v", err)
	}
}

// A file of usual size must not be felt at the start. Allocations stand for the
// time, which a busy machine would falsify: 4,000 of them are about 0.2 ms.
func TestLoadIsCheap(t *testing.T) {
	var entries []string
	for i := range 10 {
		entries = append(entries, fmt.Sprintf(`{"name": "s%d", "command": "npx", "args": ["-y", "@scope/server"], "env": {"TOKEN": "${TOKEN:-x}"}}`, i))
	}
	text := `{"tools_limit": 15, "mcpServers": [` + strings.Join(entries, ",") + `]}`
	n := testing.AllocsPerRun(10, func() { parse(t, text, "PATH=/bin", "HOME=/h") })
	if n > 4000 {
		t.Errorf("loading ten servers takes %v allocations", n)
	}
	t.Logf("%v allocations", n)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
