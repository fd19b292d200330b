package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"mcpproxy/mcp/wire"
)

// Secrets of the configuration do not show in any error, whoever repeats them.
func TestHTTPErrorsHoldNoSecrets(t *testing.T) {
	watchGoroutines(t)
	secrets := []string{"s3cret-header", "s3cret-bearer", "s3cret query", "s3cret-pass", "s3cret-env", "s3cret-path-that-is-long", "s3cret-proxy"}
	echo := func(w http.ResponseWriter, r *http.Request) {
		dump := fmt.Sprint(r.Header, r.URL, strings.Join(secrets, " "))
		switch r.URL.Path {
		case "/status/s3cret-path-that-is-long":
			http.Error(w, dump, 500)
		case "/redirect/s3cret-path-that-is-long":
			http.Redirect(w, r, "http://elsewhere.example"+r.URL.String(), 307)
		case "/garbage/s3cret-path-that-is-long":
			io.WriteString(w, dump)
		case "/lost/s3cret-path-that-is-long":
			cut()
		}
	}
	base, err := url.Parse(serve(t, http.HandlerFunc(echo)))
	if err != nil {
		t.Fatal(err)
	}
	base.User = url.UserPassword("user", "s3cret-pass")
	base.RawQuery = "key=s3cret+query&mode=x"
	for _, where := range []string{"status", "redirect", "garbage", "lost", "refused", "bad%zz"} {
		for _, protocol := range []string{"streamable-http", "sse"} {
			u := *base
			u.Path = "/" + where + "/s3cret-path-that-is-long"
			if where == "refused" {
				u.Host = "127.0.0.1:1"
			}
			address := u.String()
			if where == "bad%zz" {
				address = strings.ReplaceAll(address, "%25", "%")
			}
			var said []string
			p, err := tryPeer(t, address, func(o *httpOptions) {
				o.Protocol = protocol
				o.Headers = map[string]string{"X-Key": "s3cret-header", "Authorization": "Bearer s3cret-bearer", "Accept-Language": "en"}
				o.Secrets = []string{"s3cret-env"}
				o.Environ = []string{"https_proxy=http://u:s3cret-proxy@127.0.0.1:1"}
				o.Report = func(text string) { said = append(said, text) }
			})
			if err == nil {
				var id int64
				if id, err = p.send(t.Context(), "initialize", `{}`); err == nil {
					a, _ := p.answer(id)
					err = wire.ParseError(a.Error)
				}
			}
			if err == nil {
				t.Fatalf("%s over %s: no error", where, protocol)
			}
			said = append(said, err.Error())
			if status := new(statusError); errors.As(err, &status) {
				said = append(said, status.Body, status.Location)
			} else if where == "status" {
				t.Errorf("%v is no status", err)
			}
			for _, secret := range secrets {
				if strings.Contains(strings.Join(said, "\n"), secret) {
					t.Errorf("%s over %s: %q in %q", where, protocol, secret, said)
				}
			}
		}
	}
}

func TestHTTPRedirects(t *testing.T) {
	var leaked []string
	other := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, fmt.Sprint(r.Method, r.Header))
	}))
	mux := http.NewServeMux()
	mux.Handle("/mcp/", stub{call: func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		reply(w, m, `"`+r.Header.Get("X-Key")+`"`)
	}})
	for _, code := range []int{301, 302, 303, 307, 308} {
		mux.Handle(fmt.Sprintf("/same%d", code), http.RedirectHandler("/mcp/", code))
		mux.Handle(fmt.Sprintf("/other%d", code), http.RedirectHandler(other, code))
	}
	mux.Handle("/loop", http.RedirectHandler("/loop", 307))
	base := serve(t, mux)
	withKey := func(o *httpOptions) { o.Headers = map[string]string{"X-Key": "k1234"} }
	for _, code := range []int{307, 308} {
		p := dialPeer(t, fmt.Sprintf("%s/same%d", base, code), withKey)
		p.handshake()
		if a := p.call("x", `{}`); string(a.Result) != `"k1234"` {
			t.Errorf("%d: %s%s", code, a.Result, a.Error)
		}
	}
	for _, path := range []string{"same301", "same302", "same303", "other301", "other302", "other303", "other307", "other308", "loop"} {
		p := dialPeer(t, base+"/"+path, withKey)
		if _, err := p.send(t.Context(), "initialize", `{}`); err == nil || !strings.Contains(err.Error(), "not followed") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(leaked) > 0 {
		t.Errorf("the other host got %q", leaked)
	}
}

func TestHTTPHeaders(t *testing.T) {
	var got http.Header
	var host string
	p := dialPeer(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, host = r.Header.Clone(), r.Host
		reply(w, rpc(r), `{}`)
	})), func(o *httpOptions) {
		o.Headers = map[string]string{"host": "inner.example", "x-key": "k", "Content-Type": "text/odd", "Accept": "nothing"}
	})
	p.call("initialize", `{}`)
	if host != "inner.example" {
		t.Errorf("host %q", host)
	}
	for name, want := range map[string]string{
		"X-Key": "k", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Accept-Encoding": "identity", "User-Agent": "mcpproxy", "Mcp-Session-Id": "", "Mcp-Protocol-Version": "",
	} {
		if v := got.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

func TestHTTPBadURL(t *testing.T) {
	for _, bad := range []string{"", "example.com/mcp", "ftp://example.com", "http://", "http:///x", "http://[::1", "unix:/tmp/s"} {
		if _, err := tryPeer(t, bad, nil); err == nil || !strings.HasPrefix(err.Error(), "url ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Only the environment that is given decides about proxies.
func TestHTTPProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	for _, c := range []struct {
		environ   []string
		url, want string
	}{
		{nil, "http://server.example/mcp", ""},
		{[]string{"HTTP_PROXY=http://p:1", "https_proxy=http://q:2"}, "http://server.example/mcp", "http://p:1"},
		{[]string{"HTTP_PROXY=http://p:1", "https_proxy=http://q:2"}, "https://server.example/mcp", "http://q:2"},
		{[]string{"HTTP_PROXY=http://p:1", "http_proxy=http://l:3"}, "http://server.example/mcp", "http://l:3"},
		{[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=.example,10.0.0.0/8"}, "http://server.example/mcp", ""},
		{[]string{"HTTP_PROXY=http://p:1", "no_proxy=*"}, "http://server.example/mcp", ""},
		{[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=10.0.0.0/8"}, "http://10.1.2.3/mcp", ""},
		{[]string{"HTTP_PROXY=http://p:1"}, "http://localhost:80/mcp", ""},
	} {
		e, err := newHTTPEndpoint(httpOptions{URL: c.url, Environ: c.environ})
		if err != nil {
			t.Fatal(err)
		}
		u, err := e.own.Proxy(httptest.NewRequest("POST", c.url, nil))
		got := ""
		if u != nil {
			got = u.String()
		}
		if err != nil || got != c.want {
			t.Errorf("%v %s: %q %v, want %q", c.environ, c.url, got, err, c.want)
		}
	}
	proxied := make(chan string, 1)
	proxy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied <- r.URL.String()
		reply(w, rpc(r), `{}`)
	}))
	p := dialPeer(t, "http://server.example/mcp", func(o *httpOptions) { o.Environ = []string{"http_proxy=" + proxy} })
	p.call("initialize", `{}`)
	if got := <-proxied; got != "http://server.example/mcp" {
		t.Errorf("proxied %q", got)
	}
}

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://u:p@host.example:8443/a/b?x=1&b=2&x=3#f": "https://host.example:8443/a/b?b=***&x=***",
		"http://host":                            "http://host",
		"http://host/s/0123456789abcdef0123/mcp": "http://host/s/***/mcp",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := shownURL(u); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"http://h/x", "http://h/y?z", true},
		{"https://h", "https://H:443/", true},
		{"http://h:80", "http://h", true},
		{"http://h", "https://h", false},
		{"http://h:80", "http://h:81", false},
		{"http://h", "http://h.example", false},
		{"http://[::1]:1", "http://[::1]:1/", true},
	} {
		a, _ := url.Parse(c.a)
		b, _ := url.Parse(c.b)
		if sameOrigin(a, b) != c.want {
			t.Errorf("%s and %s", c.a, c.b)
		}
	}
}
