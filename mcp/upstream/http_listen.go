package upstream

import (
	"errors"
	"mime"
	"net/http"
	"strings"
)

// listenOnce opens the stream for what belongs to no request. A server that
// does not offer it is left alone.
func (l *httpLink) listenOnce() {
	l.mu.Lock()
	first := !l.listening
	l.listening = true
	l.mu.Unlock()
	if !first {
		return
	}
	// Not for the caller's lifetime but for the link's.
	if x, err := l.begin(l.life, 0); err == nil {
		go l.listen(x)
	}
}

// listen keeps the stream open until the link ends, the server refuses it or
// forgets the session. Pauses grow while nothing comes of it.
func (l *httpLink) listen(x *httpExchange) {
	defer l.finish(x)
	offered := false
	for tries := 1; ; tries++ {
		session := l.sessionID()
		resp, err := l.get(x)
		var status *statusError
		switch {
		case err == nil && !eventStream(resp):
			resp.Body.Close()
			return
		case err == nil:
			offered = true
			err = l.read(x, resp)
			if !errors.Is(err, errStreamEnded) {
				l.report("listening stream broke: " + err.Error())
			}
		case errors.As(err, &status) && !transientHTTP(err):
			// Some servers answer 404 where 405 is asked for, so it tells of the
			// session only where the stream has been there before.
			if offered && session != "" && forgotSession(status) {
				l.expire(session, status.Code == http.StatusNotFound)
			}
			return
		case errors.Is(err, errSessionExpired):
			return
		}
		if x.heard {
			tries = 1
		}
		x.heard = false
		if !l.pause(x, tries) {
			return
		}
	}
}

func (l *httpLink) sessionID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// eventStream reports whether the response is one, or does not say what it is.
func eventStream(resp *http.Response) bool {
	if resp.StatusCode != http.StatusOK {
		return false
	}
	header := resp.Header.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(header)
	return kind == "text/event-stream" || strings.TrimSpace(header) == ""
}
