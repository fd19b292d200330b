package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"mcpproxy/mcp/wire"
)

// What callers of the HTTP links branch on, besides *statusError.
var (
	// errUnauthorized: the server wants a login (401). It is never worth a
	// retry with the same credentials.
	errUnauthorized = errors.New("authentication required")
	// errSessionExpired: the server has forgotten our session and has not
	// processed the message. A new link has to be made.
	errSessionExpired = errors.New("session expired")
	// errLost: the server may have got the request, and will not answer it.
	errLost = errors.New("connection lost before the answer")
	// errHTTPClosed: the link was closed by us.
	errHTTPClosed = errors.New("connection closed")
)

// shownBody is how much of an error's body is kept, in bytes.
const shownBody = 512

// statusError is an answer whose status is no success. For 401 it is also
// errUnauthorized.
type statusError struct {
	// Code is the HTTP status.
	Code int
	// Body is the start of the body, at most 512 bytes, without our secrets.
	Body string
	// WWWAuthenticate is the header of that name, verbatim.
	WWWAuthenticate string
	// Location is where a redirect that was not followed leads to, without the
	// values of its query.
	Location string

	// full is the body as it came, for answers that are JSON-RPC errors.
	full []byte
}

// Error tells status, reason and the first line of a body that is text.
func (e *statusError) Error() string {
	text := fmt.Sprintf("server answered %d", e.Code)
	if name := http.StatusText(e.Code); name != "" {
		text += " " + name
	}
	if e.Location != "" {
		return text + " to " + e.Location + ", which is not followed"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(e.Body), "\n")
	if line = strings.TrimSpace(line); line != "" && line[0] != '<' {
		text += ": " + shortened(line, 200)
	}
	return text
}

// Is makes a 401 an errUnauthorized.
func (e *statusError) Is(target error) bool {
	return target == errUnauthorized && e.Code == http.StatusUnauthorized
}

// maskedError is a failure whose text was freed of secrets.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// transientHTTP reports whether the same message may succeed a little later:
// the server is down, overloaded or restarting. A refused login, a forgotten
// session, a bad certificate and the caller's own deadline are not transient.
func transientHTTP(err error) bool {
	var status *statusError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errSessionExpired), errors.Is(err, errHTTPClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &status):
		switch status.Code {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
			http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return !errors.As(err, &cert)
}

// lostSession matches what servers say that answer 400 for a session they do
// not know; the specification asks for 404.
var lostSession = regexp.MustCompile(`(?i)session.*(not found|expired|unknown|invalid|not exist|terminated)|` +
	`(unknown|invalid|no valid|missing).*session|not initialized`)

// forgotSession reports whether a failure says that the session we named is
// gone. A 404 means that, unless it is a JSON-RPC error about the method; a 400
// does if it says so.
func forgotSession(e *statusError) bool {
	m, err := wire.Parse(e.full)
	rpc := err == nil && m.Error != nil
	switch e.Code {
	case http.StatusNotFound:
		return !rpc || wire.ParseError(m.Error).Code != wire.CodeMethodNotFound
	case http.StatusBadRequest:
		if rpc {
			return lostSession.MatchString(wire.ParseError(m.Error).Message)
		}
		return lostSession.MatchString(e.Body)
	}
	return false
}

// shortened cuts s to at most n bytes of valid UTF-8.
func shortened(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
