package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// sdkModule is the module that speaks MCP.
const sdkModule = "github.com/modelcontextprotocol/go-sdk"

// versionCmd prints what this program is.
type versionCmd struct{}

// Help implements kong.HelpProvider.
func (*versionCmd) Help() string {
	return `The version is that of the module, or of the commit it was built from.

    mcpproxy version
    mcpproxy version --json`
}

// build tells what a program was built from and with.
type build struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit,omitempty"`
	Modified  bool     `json:"modified,omitempty"`
	Built     string   `json:"commit_time,omitempty"`
	Go        string   `json:"go"`
	Platform  string   `json:"platform"`
	SDK       string   `json:"sdk,omitempty"`
	Protocols []string `json:"protocols"`
}

// buildOf reads what the linker left in the running program.
func buildOf() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = "devel"
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Built = s.Value
		}
	}
	for _, dep := range info.Deps {
		if dep.Path == sdkModule {
			b.SDK = dep.Version
		}
	}
	return b
}

// run prints the version. On a pipe and on a terminal the first line is
// "mcpproxy VERSION".
func (*versionCmd) run(_ context.Context, a *app) error {
	b := buildOf()
	b.Protocols = protocolVersions()
	switch {
	case a.JSON:
		return a.writeJSON(b)
	case a.Quiet:
		return a.print(b.Version + "\n")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "mcpproxy %s\n", b.Version)
	if b.Commit != "" {
		changed := ""
		if b.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(&text, "commit %s of %s%s\n", b.Commit, b.Built, changed)
	}
	fmt.Fprintf(&text, "%s %s\n", b.Go, b.Platform)
	fmt.Fprintf(&text, "MCP %s", strings.Join(b.Protocols, ", "))
	if b.SDK != "" {
		fmt.Fprintf(&text, " (go-sdk %s)", b.SDK)
	}
	text.WriteByte('\n')
	return a.print(text.String())
}
