package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mcpproxy/mcp/wire"
)

const (
	dialTimeout      = 10 * time.Second
	errorBodyTimeout = 2 * time.Second // for the body of a failure
	maxErrorBody     = 1 << 20         // bytes of it that are read
	maxRedirects     = 5
	secretLength     = 4  // shorter values are not worth masking
	keyLength        = 20 // parts of a path from here on may be a key
)

// httpOptions says where an upstream listens and how it is reached.
type httpOptions struct {
	// URL is the endpoint, http or https, references resolved.
	URL string
	// Protocol is "auto" (also "http", ""), "streamable-http" or "sse".
	Protocol string
	// Headers are sent with every request to the URL's origin and to no other.
	Headers map[string]string
	// Environ holds NAME=value; only its proxy variables are used.
	Environ []string
	// Secrets are values that must not appear in errors, beside those that
	// Headers and URL hold anyway.
	Secrets []string
	// MaxFrame is the largest message that is read, in bytes; 0 is 64 MiB.
	MaxFrame int
	// Transport carries the requests; nil makes one of our own.
	Transport http.RoundTripper
	// Retry is the first pause before a broken stream is opened again; later
	// ones grow. 0 is 500 ms.
	Retry time.Duration
	// Report is told what was ignored on a stream; it may be nil.
	Report func(text string)
}

// httpEndpoint makes requests to one origin: it adds the configured headers,
// refuses to leave the origin and keeps secrets out of what it says.
type httpEndpoint struct {
	url     *url.URL
	headers http.Header
	client  *http.Client
	own     *http.Transport // nil where the transport was passed in
	mask    *strings.Replacer
	report  func(string)
	max     int
	retry   time.Duration
}

func newHTTPEndpoint(o httpOptions) (*httpEndpoint, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("url cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("url must start with http:// or https:// and name a host")
	}
	u.Fragment = ""
	proxies := proxyEnviron(o.Environ)
	e := &httpEndpoint{
		url: u,
		headers: http.Header{
			"User-Agent": {"mcpproxy"},
			// Whoever compresses holds back events.
			"Accept-Encoding": {"identity"},
		},
		mask:   secretMask(u, o, proxySecrets(proxies)),
		report: o.Report,
		max:    o.MaxFrame,
		retry:  o.Retry,
	}
	for name, value := range o.Headers {
		e.headers.Set(name, value)
	}
	if e.report == nil {
		e.report = func(string) {}
	}
	if e.max <= 0 {
		e.max = wire.DefaultMaxFrame
	}
	if e.retry <= 0 {
		e.retry = 500 * time.Millisecond
	}
	carrier := o.Transport
	if carrier == nil {
		e.own = &http.Transport{
			Proxy:                 proxyFunc(proxies),
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ExpectContinueTimeout: time.Second,
			ForceAttemptHTTP2:     true,
			HTTP2:                 &http.HTTP2Config{SendPingTimeout: 30 * time.Second},
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       idleTimeout(u),
			DisableCompression:    true,
		}
		carrier = e.own
	}
	e.client = &http.Client{Transport: carrier, CheckRedirect: e.checkRedirect}
	return e, nil
}

// idleTimeout is how long a connection is kept for the next request. Common
// servers close theirs after 5 s, and a POST that crosses that is lost; behind
// TLS there are proxies with more patience, and a new connection costs more.
func idleTimeout(u *url.URL) time.Duration {
	if u.Scheme == "http" {
		return 4 * time.Second
	}
	return 55 * time.Second
}

// checkRedirect follows only what keeps method, body and origin: anything else
// would lose the message or carry our headers elsewhere.
func (e *httpEndpoint) checkRedirect(next *http.Request, via []*http.Request) error {
	switch next.Response.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if len(via) <= maxRedirects && sameOrigin(next.URL, e.url) {
			return nil
		}
	}
	return http.ErrUseLastResponse
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// httpCall is one request to make.
type httpCall struct {
	method string
	to     *url.URL // nil: the endpoint's own
	body   []byte   // must stay unchanged, also after the call
	header http.Header
}

// do makes a request and returns a response with a status of success; the
// caller closes its body. Every other status is a *statusError. Errors name
// the endpoint and hold no secrets; they wrap errLost if the server may have
// got the request.
func (e *httpEndpoint) do(ctx context.Context, c httpCall) (*http.Response, error) {
	if c.to == nil {
		c.to = e.url
	}
	what := c.method + " " + shownURL(c.to)
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, c.method, c.to.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, e.fault(what, errors.New("no valid request"))
	}
	req.Header = e.headers.Clone()
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	resp, err := e.client.Do(req)
	if err != nil {
		// A url.Error repeats the whole URL.
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			err = outer.Err
		}
		if sent.Load() && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errLost, err)
		}
		return nil, e.fault(what, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, e.fault(what, e.failure(resp))
}

// failure reads a response without success.
func (e *httpEndpoint) failure(resp *http.Response) *statusError {
	patience := time.AfterFunc(errorBodyTimeout, func() { resp.Body.Close() })
	defer patience.Stop()
	// What came until the body broke is all that there is to show.
	full, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	s := &statusError{
		Code:            resp.StatusCode,
		WWWAuthenticate: strings.Join(resp.Header.Values("WWW-Authenticate"), ", "),
		full:            full,
	}
	body := e.mask.Replace(string(full))
	s.Body = strings.ToValidUTF8(body[:min(len(body), shownBody)], "")
	if target, err := resp.Location(); err == nil && resp.StatusCode < 400 {
		s.Location = e.mask.Replace(shownURL(target))
	}
	return s
}

// fault wraps err, without secrets, with what was being done.
func (e *httpEndpoint) fault(what string, err error) error {
	return &maskedError{text: e.mask.Replace(fmt.Sprintf("%s: %v", what, err)), err: err}
}

// ignore reports input that is no message and returns its start, to be shown.
func (e *httpEndpoint) ignore(g wire.Garbage) string {
	text := e.mask.Replace(shortened(string(g.Line), 200))
	e.report(fmt.Sprintf("ignored %q: %v", text, g.Why))
	return text
}

// close lets go of idle connections.
func (e *httpEndpoint) close() {
	if e.own != nil {
		e.own.CloseIdleConnections()
	}
}

// shownURL is the URL for people: no user, no values in the query, and no long
// part of the path, where some services keep a key.
func shownURL(u *url.URL) string {
	parts := strings.Split(u.Path, "/")
	for i, part := range parts {
		if len(part) >= keyLength {
			parts[i] = "***"
		}
	}
	text := u.Scheme + "://" + u.Host + strings.Join(parts, "/")
	names := make([]string, 0, 4)
	for name := range u.Query() {
		names = append(names, name+"=***")
	}
	if len(names) == 0 {
		return text
	}
	slices.Sort(names)
	return text + "?" + strings.Join(names, "&")
}

// secretMask replaces everything in the options that may be a secret, should
// somebody echo it.
func secretMask(u *url.URL, o httpOptions, more []string) *strings.Replacer {
	secrets := append(slices.Clone(o.Secrets), more...)
	for name, value := range o.Headers {
		switch http.CanonicalHeaderKey(name) {
		case "Accept", "Accept-Language", "Content-Type", "User-Agent", "Host":
			continue
		}
		secrets = append(secrets, value)
		if _, token, ok := strings.Cut(value, " "); ok {
			secrets = append(secrets, token)
		}
	}
	for _, values := range u.Query() {
		for _, value := range values {
			secrets = append(secrets, value, url.QueryEscape(value))
		}
	}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if len(part) >= keyLength {
			secrets = append(secrets, part)
		}
	}
	// Of two that begin alike the longer has to win.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= secretLength {
			pairs = append(pairs, s, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}
