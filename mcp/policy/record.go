package policy

import (
	"encoding/json"
	"time"

	"mcpproxy/mcp/activity"
	"mcpproxy/mcp/catalog"
	"mcpproxy/mcp/wire"
)

// record hands on what became of a use: of every tool call, and of anything that
// was refused.
func (g *Gate) record(u *Use, began time.Time, result json.RawMessage, failure *wire.Error) {
	if g.options.Record == nil {
		return
	}
	r := activity.Record{
		Time: began, Kind: activity.Call, Status: activity.Success, Server: u.Item.Server, Tool: u.Item.Name, Mode: u.Mode,
		Caller: string(u.Caller.Kind), Token: u.Caller.Token, RequestID: string(u.ID), Variant: u.Variant, Intent: u.Intent,
		Duration: g.options.Now().Sub(began), Request: wire.Member(u.Params, "arguments"), Response: result,
	}
	if u.Session != nil {
		r.Session, r.Client = u.Session.ID(), u.Session.Client().Name
	}
	if u.Item.Kind == catalog.Tool {
		r.Tier = g.Tier(u.Item).String()
	}
	switch {
	case failure != nil:
		r.Status, r.Error = activity.Error, failure.Message
		switch failure.Code {
		case wire.CodeRefused:
			r.Kind, r.Status = activity.Refusal, activity.Blocked
		case wire.CodeBusy, wire.CodeInvalidParams:
			if failure.Raw == nil { // ours, not the server's
				r.Kind, r.Status = activity.Refusal, activity.Rejected
			}
		}
	case string(wire.Member(result, "isError")) == "true":
		r.Status = activity.Error
	default:
		r.Check = g.outputCheck(u.Item, result)
	}
	if u.Item.Kind != catalog.Tool && r.Kind == activity.Call {
		return
	}
	g.options.Record(r)
}

// outputCheck returns what compares a result with the schema that its tool
// declares, nil where there is nothing to compare. A result that does not fit is
// let through: the server knows best what it returns.
func (g *Gate) outputCheck(tool *catalog.Item, result json.RawMessage) func() []string {
	schema := wire.Member(tool.Raw, "outputSchema")
	if tool.Kind != catalog.Tool || wire.IsNull(schema) || len(result) > maxInstance {
		return nil
	}
	return func() (notes []string) {
		value := wire.Member(result, "structuredContent")
		if value == nil {
			return []string{"the result has no structuredContent, though the tool has an outputSchema"}
		}
		for _, violation := range g.schemas.violations(schema, value) {
			notes = append(notes, "the result does not fit the tool's outputSchema: "+violation)
		}
		return notes
	}
}

// Rejected records a use that could not be tried, because it was asked for
// wrongly.
func (g *Gate) Rejected(u Use, why string) {
	g.record(&u, g.options.Now(), nil, wire.Errorf(wire.CodeInvalidParams, "%s", why))
}

// Refused records a use that was not let through, be it that there is nothing of
// that name.
func (g *Gate) Refused(u Use, refusal *wire.Error) {
	if g.options.Record == nil {
		return
	}
	if refusal.Code != wire.CodeRefused {
		refusal = refused("%s", refusal.Message)
	}
	g.record(&u, g.options.Now(), nil, refusal)
}
