package upstream

import "slices"

// Secrets are the values that the configuration of the servers hides, as far as
// they were resolved: those of servers that were connected to.
func (s *Set) Secrets() []string {
	s.mu.Lock()
	known := slices.Concat(s.servers(), s.leaving)
	s.mu.Unlock()
	var all []string
	for _, server := range known {
		server.log.mu.Lock()
		all = append(all, server.log.hidden...)
		server.log.mu.Unlock()
	}
	return all
}
