package stub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Scenario is what the stub does, as the JSON object of a scenario file. Every
// member is optional; an unknown one is an error. Members called raw are sent
// byte for byte, but for line ends, which are taken out.
type Scenario struct {
	// Name is the name in serverInfo and in default texts; "stub" if empty.
	Name string `json:"name"`
	// Protocol is the version to answer; the client's own if empty.
	Protocol string `json:"protocol"`
	// Capabilities is the raw object to announce; all of them if absent. A
	// method whose capability is missing gets -32601.
	Capabilities json.RawMessage `json:"capabilities"`
	// Instructions stand in the answer to initialize if not empty.
	Instructions string `json:"instructions"`
	// Strict refuses every request but initialize and ping with -32002 until
	// notifications/initialized has arrived.
	Strict bool `json:"strict"`
	// OnInitialized are raw messages to send at notifications/initialized.
	OnInitialized []json.RawMessage `json:"on_initialized"`

	// Tools, Resources, Templates and Prompts are what the lists say. Without
	// Tools the built-in tools are listed; the others are empty by default.
	Tools     *List `json:"tools"`
	Resources *List `json:"resources"`
	Templates *List `json:"templates"`
	Prompts   *List `json:"prompts"`
	// Lists is a JSON file with these four, which count instead of those here
	// and are read anew for every request, so that what is offered can change
	// while the stub runs.
	Lists string `json:"lists"`
	// ListBuiltins names built-in tools ("*": all) to list in front of Tools.
	// Unlisted ones can be called all the same.
	ListBuiltins []string `json:"list_builtins"`

	// Calls, Reads and Gets hold answers by tool name, URI and prompt name;
	// Methods by method, for every method including initialize, server/discover
	// and tools/list. The more special one wins.
	Calls   map[string]*Answer `json:"calls"`
	Reads   map[string]*Answer `json:"reads"`
	Gets    map[string]*Answer `json:"gets"`
	Methods map[string]*Answer `json:"methods"`

	// Framing applies to every message; see the Frame constants.
	Framing []string `json:"framing"`
	// Banner are lines printed to stdout at the start.
	Banner []string `json:"banner"`
	// StderrText and StderrBytes (so many bytes, in lines) go to stderr at the
	// start.
	StderrText  string `json:"stderr_text"`
	StderrBytes int    `json:"stderr_bytes"`
	// StartDelayMS is slept through before anything is printed or read.
	StartDelayMS int `json:"start_delay_ms"`
	// ExitAtStart ends the process with this status before reading anything.
	ExitAtStart *int `json:"exit_at_start"`

	// IgnoreEOF lets the process live on after its stdin ended, EOFDelayMS
	// lets it live on for a while, IgnoreTerm makes it log SIGTERM, SIGINT and
	// SIGHUP and do nothing else.
	IgnoreEOF  bool `json:"ignore_eof"`
	EOFDelayMS int  `json:"eof_delay_ms"`
	IgnoreTerm bool `json:"ignore_term"`
	// Grandchild is a process started at the start and never ended.
	Grandchild *Grandchild `json:"grandchild"`
	// LifetimeMS bounds the life of the process whatever happens; five minutes
	// if 0.
	LifetimeMS int `json:"lifetime_ms"`

	// StringIDs makes the ids of the stub's own requests strings ("s1").
	StringIDs bool `json:"string_ids"`
	// Log is a file to which events are appended; see [ReadLog].
	Log string `json:"log"`
	// Starts is a file to which every start appends its pid; see [Starts].
	Starts string `json:"starts"`
}

// Answer is how one kind of request is answered. Without an outcome (Result,
// Error, Bytes, Never, Exit) the stub answers as it would have anyway, after
// and around which the rest applies.
type Answer struct {
	// Result and Error are raw.
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	// Bytes makes the result one text block of so many bytes.
	Bytes int `json:"bytes"`
	// Never answers never.
	Never bool `json:"never"`
	// Exit ends the process with this status instead of answering, ThenExit
	// after answering.
	Exit     *int `json:"exit"`
	ThenExit *int `json:"then_exit"`
	// DelayMS is waited before the outcome.
	DelayMS int `json:"delay_ms"`
	// StderrText and StderrBytes go to stderr first.
	StderrText  string `json:"stderr_text"`
	StderrBytes int    `json:"stderr_bytes"`
	// Before and After are raw messages sent before the delay and after the
	// answer.
	Before []json.RawMessage `json:"before"`
	After  []json.RawMessage `json:"after"`
	// Framing applies to the answer alone; see the Frame constants.
	Framing []string `json:"framing"`
	// Times limits this to the first so many requests, UntilStart to the first
	// so many starts (which Scenario.Starts counts); 0 is no limit.
	Times      int `json:"times"`
	UntilStart int `json:"until_start"`
}

// List is what a list method answers. In a scenario it is a raw array, which is
// one page, or an array of pages under "pages".
type List struct {
	Pages []Page `json:"pages"`
}

// Page is one page of a list.
type Page struct {
	// Cursor is the raw cursor that asks for this page, absent for the first.
	Cursor json.RawMessage `json:"cursor"`
	// Items is a raw array.
	Items json.RawMessage `json:"items"`
	// Next is the raw nextCursor to send, if any; it may well be this page's
	// own cursor.
	Next json.RawMessage `json:"next"`
}

// UnmarshalJSON accepts both forms of a list.
func (l *List) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		l.Pages = []Page{{Items: bytes.Clone(data)}}
		return nil
	}
	type plain List
	return strictly(data, (*plain)(l))
}

// load finds and reads the scenario.
func load(args []string) (*Scenario, error) {
	source := os.Getenv("MCPSTUB")
	if len(args) > 0 {
		source = args[0]
	} else if info, err := os.Stat(source); !strings.HasPrefix(source, "{") && (err != nil || info.IsDir()) {
		return &Scenario{}, nil // a mere flag
	}
	text := []byte(source)
	if !strings.HasPrefix(source, "{") {
		var err error
		if text, err = os.ReadFile(source); err != nil {
			return nil, fmt.Errorf("read scenario: %w", err)
		}
	}
	sc := &Scenario{}
	if err := strictly(text, sc); err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return sc, nil
}

// strictly decodes one value and refuses unknown members.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// lifetime is the longest the process may live.
func (sc *Scenario) lifetime() time.Duration {
	if sc.LifetimeMS > 0 {
		return ms(sc.LifetimeMS)
	}
	return 5 * time.Minute
}

// name is the name in serverInfo.
func (sc *Scenario) name() string {
	if sc.Name == "" {
		return "stub"
	}
	return sc.Name
}

// ms is n milliseconds.
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
