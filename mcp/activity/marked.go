package activity

import "bytes"

// Kinds that are named in several places: what follows "Bearer", and a block.
const (
	bearerToken = "bearer_token"
	privateKey  = "private_key"
)

// marked looks for what is known by the words around it. Each of them is sought
// by itself, at the speed of memory: in most payloads there is none.
func (f *finder) marked() {
	f.each("PRIVATE KEY", f.privateKey)
	f.each("earer ", f.bearer)
	f.each("://", f.urlPassword)
	f.each("AccountKey=", f.accountKey)
	f.each("Q~", f.azureSecret)
	f.each("hooks.slack.com/", f.slackHook)
	f.each("mcp_agt_", f.agentToken)
}

// each calls look with the place behind each mark.
func (f *finder) each(mark string, look func(at int)) {
	for at := 0; ; {
		i := bytes.Index(f.b[at:], []byte(mark))
		if i < 0 {
			return
		}
		at += i + len(mark)
		look(at)
	}
}

// longestKey bounds how far the end of a private key is sought, in bytes.
const longestKey = 32 << 10

// privateKey adds a block of PEM or of PGP, from its first line on. One that is
// cut off ends with its string.
func (f *finder) privateKey(at int) {
	const begin, end = "-----BEGIN ", "-----END "
	if n := len(f.spans); n > 0 && f.spans[n-1].end >= at && f.spans[n-1].kind == privateKey {
		return // its last line
	}
	line := f.b[max(0, at-48):at]
	i := bytes.LastIndex(line, []byte(begin))
	if i < 0 {
		return
	}
	rest := f.b[at:min(len(f.b), at+longestKey)]
	rest = rest[:endOfString(rest)]
	n := len(rest)
	if last := bytes.Index(rest, []byte(end)); last >= 0 {
		if n = last + len(end); bytes.Contains(rest[n:], []byte("-----")) {
			n += bytes.Index(rest[n:], []byte("-----")) + len("-----")
		}
	}
	f.add(at-len(line)+i, at+n, privateKey)
}

// endOfString is the length of what stands in front of the next quote that ends
// a string.
func endOfString(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}

// bearer adds the token of an Authorization header.
func (f *finder) bearer(at int) {
	n := count(f.b[at:], word|joint)
	token := f.b[at : at+n]
	if n < 20 || at < 7 || f.b[at-7]|0x20 != 'b' || !bytes.ContainsAny(token, "0123456789") {
		return
	}
	f.add(at, at+n, bearerToken)
}

// urlPassword adds the password of scheme://user:password@host.
func (f *finder) urlPassword(at int) {
	const longest = 256
	rest := f.b[at:min(len(f.b), at+longest)]
	colon := -1
	for i, c := range rest {
		switch {
		case c == '@':
			if password := i - colon - 1; colon >= 0 && password >= 3 {
				f.add(at+colon+1, at+i, "url_password")
			}
			return
		case c == ':' && colon < 0:
			colon = i
		case c <= ' ', c == '/', c == '"', c == '\\', c == '<', c == '>', c == '?', c == '#', c == '$', c == '{':
			return
		}
	}
}

// accountKey adds the key of an Azure storage account: 64 bytes in base64.
func (f *finder) accountKey(at int) {
	n := count(f.b[at:], coded)
	if n < 80 || n > 90 {
		return
	}
	for n < len(f.b)-at && f.b[at+n] == '=' {
		n++
	}
	f.add(at, at+n, "azure_storage_key")
}

// azureSecret adds a client secret of Microsoft Entra: three characters and a
// digit, Q~, then 31 to 34 characters.
func (f *finder) azureSecret(at int) {
	n := 0
	for n < len(f.b)-at && (classes[f.b[at+n]]&word != 0 || f.b[at+n] == '.' || f.b[at+n] == '~') {
		n++
	}
	start := at - len("Q~") - 4
	if n < 31 || n > 34 || start < 0 || classes[f.b[start+3]]&digit == 0 || countBack(f.b[:start+3], word) < 3 {
		return
	}
	f.add(start, at+n, "azure_client_secret")
}

// slackHook adds the path of a webhook, which is all that is needed to write.
func (f *finder) slackHook(at int) {
	n := count(f.b[at:], word|joint)
	if n < 40 || !bytes.HasPrefix(f.b[at:], []byte("services/")) && !bytes.HasPrefix(f.b[at:], []byte("workflows/")) {
		return
	}
	f.add(at, at+n, "slack_webhook")
}

// agentToken adds a token of this program wherever it stands, and a part of one.
func (f *finder) agentToken(at int) {
	if n := count(f.b[at:], hexa); n >= 8 {
		f.add(at-len("mcp_agt_"), at+n, "mcpproxy_token")
	}
}
