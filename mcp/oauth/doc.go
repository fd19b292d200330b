// Package oauth logs in to servers that ask for it: the authorization flow, the
// tokens, and refreshing them once across processes. It refuses to know what is
// said to a server afterwards. It holds no code yet.
package oauth
