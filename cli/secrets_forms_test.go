//go:build unix

package cli_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsKnownByTheirForm: what servers print of secrets that no configuration
// names, such as the agent token of a client, is masked wherever it would be kept.
func TestSecretsKnownByTheirForm(t *testing.T) {
	t.Parallel()
	secrets := []string{"mcp_agt_" + strings.Repeat("0a1b", 16), "ghp_" + strings.Repeat("aB3dE6", 6)}
	text := `"stderr_text":"` + strings.Join(secrets, ` and `) + `\n"`
	for name, configure := range sharings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, configure("", newStub(t, "talks", text), newStub(t, "dies", `"exit_at_start":3,`+text)), "--log-level", "debug")
			p.initialize("")
			p.awaitTools("talks__fast")
			p.tool("talks__fast", "")
			p.tool("dies__fast", "")
			said := string(p.command("logs", "talks")) + string(p.command("list", "--json"))
			if !strings.Contains(said, "*** and ***") {
				t.Errorf("nothing is masked in %s", said)
			}
			p.close()
			said += p.stderrText()
			err := filepath.WalkDir(filepath.Join(p.dir, "data"), func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return nil // the hub may be leaving
				}
				content, err := os.ReadFile(path)
				if !errors.Is(err, fs.ErrNotExist) && err != nil {
					return err
				}
				said += string(content)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			for _, secret := range secrets {
				if i := strings.Index(said, secret); i >= 0 {
					t.Errorf("%s stands in %q", secret[:8], said[max(0, i-200):i])
				}
			}
		})
	}
}
