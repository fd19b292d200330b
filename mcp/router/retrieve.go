package router

// NewRetrieve returns the router of mode retrieve_tools: the tools of the servers
// are searched, and called through three tools of which a client can permit each
// by itself. What it lists is the same whatever the servers offer. Search has to
// be there.
func NewRetrieve(options Options) *Router {
	r := newRouter(options)
	r.builtins = builtins{options.Search.retrieveTools(), options.Search.describeTool(false)}
	for _, v := range variants() {
		r.builtins = append(r.builtins, r.callVariant(v))
	}
	if options.Pages != nil {
		r.builtins = append(r.builtins, options.Pages.Builtin())
	}
	if options.Management != nil {
		r.builtins = append(r.builtins, options.Management.Builtins()...)
	}
	return r
}
