package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allowedImports is the table of the design: for each package of the module the
// packages of the module it may import. A new arrow is a change of the design.
func allowedImports() map[string][]string {
	return map[string][]string{
		"":               {"cli"},
		"cli":            {"*"},
		"cli/clientconf": {},
		"mcp":            {},
		"mcp/wire":       {},
		"mcp/catalog":    {"mcp/wire"},
		"mcp/config":     {},
		"mcp/oauth":      {"mcp/config", "store"},
		"mcp/upstream":   {"mcp/wire", "mcp/catalog", "mcp/config", "mcp/oauth", "store"},
		"mcp/hub":        {"mcp/wire", "mcp/catalog", "mcp/config", "mcp/upstream", "store"},
		"mcp/auth":       {"mcp/catalog", "store"},
		"mcp/activity":   {"mcp/catalog", "store"},
		"mcp/policy":     {"mcp/wire", "mcp/catalog", "mcp/auth", "mcp/activity", "store"},
		"mcp/router":     {"mcp/wire", "mcp/catalog", "mcp/auth", "mcp/policy", "mcp/proxytool", "index", "jsvm", "store"},
		"mcp/httpd":      {"mcp/router", "mcp/policy", "mcp/auth", "mcp/activity", "mcp/catalog", "mcp/config", "store", "index"},
		"mcp/proxytool":  {},
		"index":          {"mcp/catalog"},
		"jsvm":           {},
		"store":          {},
	}
}

// homes are the libraries that only one package may import, so that what they
// cost and what they decide stays in one place.
func homes() map[string]string {
	return map[string]string{
		"github.com/alecthomas/kong":        "cli",
		"github.com/charmbracelet/lipgloss": "cli",
		"modernc.org/sqlite":                "store",
		"github.com/fsnotify/fsnotify":      "mcp/config",
		"github.com/sergi/go-diff":          "cli",
		"github.com/santhosh-tekuri":        "mcp/policy",
		"github.com/blevesearch":            "index",
		"github.com/dop251/goja":            "jsvm",
		"github.com/evanw/esbuild":          "jsvm",
	}
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath string
	Module     struct{ Path, Dir string }
	Imports    []string
}

// TestImports holds the design's table of imports on every system we build for.
func TestImports(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			for _, p := range listPackages(t, goos) {
				checkImports(t, p)
			}
		})
	}
}

func checkImports(t *testing.T, p listedPackage) {
	t.Helper()
	name := inModule(p, p.ImportPath)
	allowed, known := allowedImports()[name]
	if strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/") {
		return
	}
	if !known {
		t.Errorf("package %q is not in the table", name)
		return
	}
	for _, path := range p.Imports {
		if path == p.Module.Path || strings.HasPrefix(path, p.Module.Path+"/") {
			if to := inModule(p, path); !slices.Contains(allowed, to) && !slices.Contains(allowed, "*") {
				t.Errorf("%q imports %q, an arrow that is not in the table", name, to)
			}
			continue
		}
		for library, home := range homes() {
			if (path == library || strings.HasPrefix(path, library+"/")) && name != home {
				t.Errorf("%q imports %s, which only %q may", name, path, home)
			}
		}
	}
}

// inModule is the path of a package within its module.
func inModule(p listedPackage, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, p.Module.Path), "/")
}

// listPackages asks the go command for the packages of the module.
func listPackages(t *testing.T, goos string) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Module,Imports", "./...")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 5 {
		t.Fatalf("go list found %d packages", len(list))
	}
	return list
}

// TestMapOfTheFlow holds the file names in the map of package mcp against the
// files there are.
func TestMapOfTheFlow(t *testing.T) {
	text, err := os.ReadFile("../mcp/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b[a-z]+/[a-z_]+\.go\b`).FindAllString(string(text), -1)
	if len(names) < 4 {
		t.Fatalf("the map names %q only", names)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("../mcp", name)); err != nil {
			t.Errorf("the map names %s: %v", name, err)
		}
	}
}
