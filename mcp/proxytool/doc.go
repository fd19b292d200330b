// Package proxytool is the one tool through which a client reaches all others:
// its rules and results, a client of it, and a way to add it to any server made
// with the SDK. It refuses to know this program. It holds no code yet.
package proxytool
