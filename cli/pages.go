package cli

import (
	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/router"
)

// pages keep the long results of a core.
func (c *core) pages(a *app) *router.Pages {
	return router.NewPages(router.PageOptions{
		Gate:      c.gate,
		Store:     c.openStore,
		Limit:     func() int { return c.cfg.Load().ToolResponseLimit },
		Size:      func() int64 { return int64(c.cfg.Load().PagesMaxSizeMB) << 20 },
		MaxResult: func() int { return c.cfg.Load().MaxResultSizeChars },
		Now:       a.Now,
		Record:    func(r router.PageRead) { c.recorder.Add(pageRecord(r)) },
		OnError:   once(func(err error) { a.warn(err.Error() + "; long results are sent whole") }),
	})
}

// pageRecord is the record of a call of read_cache.
func pageRecord(p router.PageRead) activity.Record {
	r := activity.Record{
		Kind: activity.ReadCache, Status: activity.Success, Time: p.Began, Duration: p.Duration, Server: p.Server, Tool: p.Item,
		Caller: string(p.Caller.Kind), Token: p.Caller.Token, RequestID: string(p.ID), Request: p.Request, Response: p.Response, Error: p.Error,
	}
	switch p.Outcome {
	case router.PageForbidden:
		r.Status = activity.Blocked
	case router.PageMissing:
		r.Status = activity.Rejected
	case router.PageFailed:
		r.Status = activity.Error
	}
	if p.Session != nil {
		r.Session, r.Client = p.Session.ID(), p.Session.Client().Name
	}
	return r
}
