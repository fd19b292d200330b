// Package router holds the modes: which tools a client sees, the instructions
// it gets, and how its requests are answered.
//
// It refuses to know how servers are reached: a router holds a policy.Gate and
// nothing else that leads to one. A router is owned by whoever made it; its Run
// ends with its context.
package router
