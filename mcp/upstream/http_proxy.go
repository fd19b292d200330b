package upstream

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxyEnviron picks the proxy variables out of an environment of NAME=value
// lines; of both spellings the one in lower case wins, as everywhere.
func proxyEnviron(environ []string) *httpproxy.Config {
	get := func(name string) string {
		upper := ""
		for _, line := range environ {
			if value, ok := strings.CutPrefix(line, strings.ToLower(name)+"="); ok && value != "" {
				return value
			}
			if value, ok := strings.CutPrefix(line, name+"="); ok {
				upper = value
			}
		}
		return upper
	}
	return &httpproxy.Config{HTTPProxy: get("HTTP_PROXY"), HTTPSProxy: get("HTTPS_PROXY"), NoProxy: get("NO_PROXY")}
}

// proxyFunc tells a transport which proxy to use; loopback is never proxied.
func proxyFunc(c *httpproxy.Config) func(*http.Request) (*url.URL, error) {
	choose := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// proxySecrets returns the passwords in the proxy variables.
func proxySecrets(c *httpproxy.Config) []string {
	var secrets []string
	for _, raw := range []string{c.HTTPProxy, c.HTTPSProxy} {
		u, err := url.Parse(raw)
		if err != nil {
			secrets = append(secrets, raw)
		} else if password, ok := u.User.Password(); ok {
			secrets = append(secrets, password)
		}
	}
	return secrets
}
