//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// planted are secrets by where they are put.
type planted map[string]string

// newPlanted makes up one secret for each place.
func newPlanted(agentToken string) planted {
	return planted{
		"env":               "envi-7f31c09e55aa",
		"flag":              "flag-83b2d7710cde",
		"flag with =":       "equa-19cc04f2ab73",
		"-e":                "dash-56ad90be1f28",
		"query":             "quer-c4d1e7720f9b",
		"password of a url": "pass-2e8870bdfa14",
		"header":            "head-90fe3b5c61d2",
		"other header":      "hkey-6ab7f0d3c981",
		"argument by name":  "args-d2907ce4b16f",
		"argument by form":  "ghp_" + strings.Repeat("aB3dE5gH7j", 4)[:36],
		"result by form":    "sk-ant-api03-" + strings.Repeat("Zx9Yw8Vu7T", 5),
		"agent token":       agentToken,
	}
}

// quoted are the secrets of these places in one line of text, as a JSON string.
func (x planted) quoted(places ...string) json.RawMessage {
	text := "all that I know:"
	for _, place := range places {
		text += " " + x[place]
	}
	raw, err := json.Marshal(text + "\n")
	if err != nil {
		panic(err) // a string can always be marshalled
	}
	return raw
}

// blabber is an HTTP server that repeats what it was sent: where broken, in the
// body of an error, else in the content of results.
func blabber(t *testing.T, broken bool) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		user, password, _ := r.BasicAuth()
		seen := fmt.Sprintf("%s %s %s %s %s", r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), user, password)
		m := parse(string(body))
		result := `{}`
		switch {
		case broken:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "internal error with %s", seen)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"blabber","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"tell"},{"name":"fail"}]}`
		case m.Method == "tools/call":
			text, err := json.Marshal(seen)
			if err != nil {
				panic(err) // a string can always be marshalled
			}
			if stringAt(m.Params, "name") == "fail" {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, m.ID, text)
				return
			}
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, text)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// remoteEntry is the entry of an HTTP server whose address and headers hold
// secrets.
func (x planted) remoteEntry(name, address string) string {
	address = strings.Replace(address, "http://", "http://user:"+x["password of a url"]+"@", 1)
	return fmt.Sprintf(`{"name":%q,"url":"%s/mcp?api_key=%s","headers":{"Authorization":"Bearer %s","X-Api-Key":%q}}`,
		name, address, x["query"], x["header"], x["other header"])
}

// localEntry is the entry of a stdio server whose command line and environment
// hold secrets.
func (x planted) localEntry(s *upstreamStub) string {
	return fmt.Sprintf(`{"name":%q,"command":"mcpstub","args":["stub",%q,"--token",%q,"--password=%s","-e","API_KEY=%s"],"env":{"API_TOKEN":%q}}`,
		s.name, s.file, x["flag"], x["flag with ="], x["-e"], x["env"])
}

// TestPlantedSecrets plants a secret in every field of the configuration, has the
// servers repeat them on stderr, in errors and in results, and has the client
// send some in arguments. Nothing that the program says or keeps shows one of
// them, with the most talkative log level, in any command.
func TestPlantedSecrets(t *testing.T) {
	t.Parallel()
	for name, sharing := range map[string]string{"private": `"share_upstreams":false`, "shared": fmt.Sprintf(`"hub_idle_timeout":%q`, hubIdle)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := sharedFolder(t)
			save(t, dir, `{}`)
			token, _ := issue(t, dir, "agent", "--servers", "local")
			secrets := newPlanted(token)
			// A server knows its own secrets, and what it returns may hold others.
			own := secrets.quoted("env", "flag", "flag with =", "-e")
			result := secrets.quoted("env", "flag", "header", "query", "argument by form", "result by form", "agent token")
			local := newStub(t, "local", fmt.Sprintf(`"stderr_text":%[1]s,"list_builtins":["echo","env"],
				"tools":[{"name":"tell"},{"name":"fail"},{"name":"odd"}],
				"calls":{"tell":{"stderr_text":%[1]s,"result":{"content":[{"type":"text","text":%[2]s}],"structuredContent":{"all":%[2]s}}},
					"fail":{"stderr_text":%[1]s,"error":{"code":-32000,"message":%[2]s,"data":{"all":%[2]s}}},
					"odd":{"result":{"isError":true,"content":[{"type":"text","text":%[2]s}]}}}`, own, result))
			dead := newStub(t, "dead", fmt.Sprintf(`"exit_at_start":1,"stderr_text":%s`, own))
			save(t, dir, fmt.Sprintf(`{%s,"logging":{"level":"debug"},"mcpServers":[%s,%s,%s,%s]}`, sharing, secrets.localEntry(local), secrets.localEntry(dead),
				secrets.remoteEntry("remote", blabber(t, false).URL), secrets.remoteEntry("broken", blabber(t, true).URL)))
			p := startProxyIn(t, dir, "", "--log-level", "debug")
			p.initialize("")
			p.awaitTools("local__tell", "remote__tell")

			said := map[string]string{} // by the program itself, by where
			arguments := fmt.Sprintf(`{"password":%q,"note":"use %s or %s","known":"%s %s %s","nested":{"list":[%q]}}`,
				secrets["argument by name"], secrets["argument by form"], token, secrets["env"], secrets["flag"], secrets["header"], token)
			for _, tool := range []string{"local__tell", "local__fail", "local__odd", "local__echo", "remote__tell", "remote__fail"} {
				p.tool(tool, arguments) // what the server says is the client's to see
			}
			for _, tool := range []string{"dead__tell", "broken__tell", "local__nothing", "nobody__tell"} {
				said["the answer of "+tool] = string(p.tool(tool, arguments).Raw)
			}
			awaitUntil(t, answerTime, "the calls are recorded", func() bool {
				return strings.Count(runCommand(t, dir, "activity", "-n", "0").stdout, "\n") >= 10
			})
			for _, command := range [][]string{
				{"list"}, {"get", "local"}, {"get", "remote"}, {"status"}, {"hub", "status"}, {"logs", "local"}, {"logs", "dead"},
				{"tools", "list"}, {"tools", "show", "local:tell"}, {"activity", "-n", "0"}, {"activity", "export"}, {"activity", "export", "--format", "csv"},
				{"activity", "summary"}, {"quarantine"}, {"quarantine", "show", "local"}, {"quarantine", "diff"}, {"token", "list"}, {"token", "show", "agent"},
			} {
				for _, more := range [][]string{nil, {"--json", "--log-level", "debug"}} {
					args := append(append([]string{}, command...), more...)
					out := runCommand(t, dir, args...)
					if more == nil && out.code == 2 {
						t.Errorf("%q: %s", args, out.stderr)
					}
					said["stdout of "+strings.Join(args, " ")], said["stderr of "+strings.Join(args, " ")] = out.stdout, out.stderr
				}
			}
			for _, args := range [][]string{{"list", "--check"}, {"quarantine", "show", "dead"}, {"tools", "list", "broken"}} { // which start servers
				out := runCommand(t, dir, append(args, "--log-level", "debug")...)
				said[strings.Join(args, " ")] = out.stdout + out.stderr
			}
			for _, id := range strings.Fields(runCommand(t, dir, "activity", "-n", "6", "-q").stdout) {
				out := runCommand(t, dir, "activity", "show", id, "--json")
				if out.code != 0 {
					t.Errorf("activity show %s: %s", id, out.stderr)
				}
				said["activity show "+id] = out.stdout + out.stderr
			}
			data := filepath.Join(dir, "data")
			for path, text := range filesIn(t, data) { // while all is open
				said[path+" while it runs"] = text
			}
			p.close()
			assertAllGone(t, home, hubIdle+endOfAll)
			for path, text := range filesIn(t, data) {
				said[path] = text
			}
			said["stderr"] = p.stderrText()
			needed := []string{"mcpproxy.db", "logs/local.log", "logs/dead.log"}
			if name == "shared" {
				needed = append(needed, "logs/hub.log")
			}
			for _, path := range needed {
				if _, there := said[path]; !there {
					t.Errorf("there is no %s to look into", path)
				}
			}
			if text := said["stdout of activity export"]; !strings.Contains(text, "tell") {
				t.Errorf("no calls in the activity: %s", text)
			}
			for where, text := range said {
				for what, secret := range secrets {
					if i := strings.Index(text, secret); i >= 0 {
						t.Errorf("%s has the secret of %s: …%.200q", where, what, text[max(0, i-100):])
					}
				}
			}
		})
	}
}
