// Package httpd serves the MCP endpoints, the REST interface and the web page
// on HTTP, and refuses to know anything but HTTP. It holds no code yet.
package httpd
