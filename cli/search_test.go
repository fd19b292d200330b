package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/mcp/config"
	"mcpproxy/store"
)

// TestSearchWithEmbeddings has an endpoint put a tool first that the words do not,
// and fail: the words decide then.
func TestSearchWithEmbeddings(t *testing.T) {
	fails := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails || r.Header.Get("Authorization") != "Bearer of-the-file" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		var data []string
		for i, text := range asked.Input {
			vector := "[1,0]"
			if strings.Contains(text, "lake") {
				vector = "[0,1]"
			}
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, vector))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
	}))
	defer server.Close()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "key"), []byte("of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	search := func() result {
		return invokeWith(t, func(env *Env) {
			env.Home = home
			text := fmt.Sprintf(`{"search_embedding": {"url": "%s/v1", "api_key": "${file:%s}", "weight": 100}, "mcpServers": {"boats": {"command": "x"}}}`, server.URL, filepath.Join(home, "key"))
			rememberTools(t, env.Home, text, "boats", `{"name":"boat_list","description":"list a boat on a lake"}`, `{"name":"boat_show","description":"show the boats of the sea"}`)
		}, "-q", "tools", "search", "list", "a", "boat", "please")
	}
	if got := search(); got.code != 0 || !strings.HasPrefix(got.stdout, "boats:boat_show\n") {
		t.Errorf("with the endpoint: %+v", got)
	}
	fails = true
	if got := search(); got.code != 0 || !strings.HasPrefix(got.stdout, "boats:boat_list\n") {
		t.Errorf("without it: %+v", got)
	}
}

// rememberTools writes a configuration, and has the store know the tools of a
// server of it.
func rememberTools(t *testing.T, home, configuration, server string, definitions ...string) {
	t.Helper()
	folder := filepath.Join(home, ".mcpproxy")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mcp_config.json"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.LoadOptions{Home: home, Dir: home})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(folder, storeFile), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := keyOf(cfg.Server(server))
	var items []store.Item
	for _, definition := range definitions {
		var tool struct{ Name string }
		if err := json.Unmarshal([]byte(definition), &tool); err != nil {
			t.Fatal(err)
		}
		items = append(items, store.Item{Kind: "tool", Name: tool.Name, Raw: json.RawMessage(definition)})
	}
	if err := db.PutServer(t.Context(), store.Server{Key: key, State: stateReady, AttemptedAt: time.Now(), ConnectedAt: time.Now(), ListedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.ReplaceItems(t.Context(), key, items); err != nil {
		t.Fatal(err)
	}
}
