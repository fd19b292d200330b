package activity

import (
	"encoding/json"
	"time"

	"mcpproxy/store"
)

// Kind is what a record is about.
type Kind string

// The kinds of records.
const (
	Call       Kind = "call"       // a use of an item that went to its server
	Refusal    Kind = "refusal"    // a use that was not let through
	ReadCache  Kind = "read_cache" // a page of a result that was kept
	Quarantine Kind = "quarantine" // an approval, a block, a release
	Config     Kind = "config"     // a change of the configuration
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{Call, Refusal, ReadCache, Quarantine, Config} }

// Status is how it ended.
type Status string

// The ways to end. A tool that answers with isError is an Error.
const (
	Success  Status = "success"
	Error    Status = "error"
	Blocked  Status = "blocked"  // the policy forbids it
	Rejected Status = "rejected" // it was wrong, or came at the wrong time
)

// Statuses lists all ways to end.
func Statuses() []Status { return []Status{Success, Error, Blocked, Rejected} }

// Record is one thing that was done. Texts that do not apply are empty.
type Record struct {
	// ID is [Recorder.NewID]'s, or given by Add where it is empty.
	ID string `json:"id"`
	// Time is when it began; the zero time is when it is added.
	Time     time.Time `json:"time"`
	Kind     Kind      `json:"kind"`
	Status   Status    `json:"status"`
	Server   string    `json:"server,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Instance string    `json:"instance,omitempty"` // empty: that of the Recorder
	Mode     string    `json:"mode,omitempty"`     // empty: that of the Recorder
	Session  string    `json:"session,omitempty"`
	Client   string    `json:"client,omitempty"`  // the client's name for itself
	Caller   string    `json:"caller,omitempty"`  // the kind of caller
	Token    string    `json:"token,omitempty"`   // the name of the agent token
	Variant  string    `json:"variant,omitempty"` // of call_tool_*: read, write, destructive
	Tier     string    `json:"tier,omitempty"`    // that the tool needs
	Intent   string    `json:"intent,omitempty"`  // what the caller says it is for
	Error    string    `json:"error,omitempty"`
	// RequestID is the client's, ParentID the ID of the record of which this is
	// a part.
	RequestID string `json:"request_id,omitempty"`
	ParentID  string `json:"parent_id,omitempty"`
	// Duration has microseconds. In JSON it is duration_ms.
	Duration time.Duration `json:"-"`
	// RequestBytes and ResponseBytes are the sizes of the whole payloads; 0
	// stands for the length of Request or Response.
	RequestBytes  int64 `json:"request_bytes"`
	ResponseBytes int64 `json:"response_bytes"`
	// Request and Response are the payloads: raw when they are added, and when
	// they are read masked, cut, and a JSON string where they are no JSON any
	// more. Who adds a record does not change them afterwards.
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
	// Findings is what was found in the payloads. The Recorder fills it.
	Findings []Finding `json:"findings,omitempty"`
	// Notes is what else is to be known, as sentences without a full stop: that
	// a result does not fit the schema of its tool.
	Notes []string `json:"notes,omitempty"`
	// Check returns more notes. It is called where it delays nobody; nil is none.
	Check func() []string `json:"-"`

	// Seq is the place in the order of writing, when it is read.
	Seq int64 `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	r.Time = r.Time.UTC()
	return json.Marshal(struct {
		plain
		DurationMS float64 `json:"duration_ms"`
	}{plain(r), milliseconds(r.Duration)})
}

// milliseconds is d as a number with microseconds behind the point.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Finding is a sort of sensitive data in a payload. It does not hold the data.
type Finding struct {
	// Kind names what it is: github_token, private_key, card_number, …
	Kind string `json:"kind"`
	// Where is request or response.
	Where string `json:"where"`
	Count int    `json:"count"`
}

// fromRow is the record of a row.
func fromRow(a *store.Activity) Record {
	r := Record{
		Seq: a.Seq, ID: a.ID, Time: a.At, Kind: Kind(a.Kind), Status: Status(a.Status), Server: a.Server, Tool: a.Tool,
		Instance: a.Instance, Mode: a.Mode, Session: a.Session, Client: a.Client, Caller: a.Caller, Token: a.Token,
		Variant: a.Variant, Tier: a.Tier, Intent: a.Intent, Error: a.Error, RequestID: a.RequestID, ParentID: a.ParentID,
		Duration: a.Duration, RequestBytes: a.RequestBytes, ResponseBytes: a.ResponseBytes,
		Request: payloadOf(a.Request), Response: payloadOf(a.Response),
	}
	// What another build wrote differently is left out.
	_ = json.Unmarshal([]byte(a.Findings), &r.Findings)
	_ = json.Unmarshal([]byte(a.Notes), &r.Notes)
	return r
}

// payloadOf is a stored payload as a JSON value, nil where there is none.
func payloadOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be marshalled
	}
	return quoted
}
