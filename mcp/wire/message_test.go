package wire

import (
	"encoding/json"
	"testing"
)

// TestParse is the table of what a JSON object is as a message.
func TestParse(t *testing.T) {
	const request, notification, response = "request", "notification", "response"
	for raw, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`:                        request,
		`{"method":"m","id":"","params":null}`:                         request,
		`{"id":1.50,"m\u0065thod":"m"}`:                                request,
		`{"jsonrpc":"2.0","method":"m"}`:                               notification,
		`{"jsonrpc":"2.0","id":null,"method":"m"}`:                     "",
		`{"jsonrpc":"2.0","id":1,"result":null}`:                       response,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`:            response,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1},"result":null}`:    response,
		`{"jsonrpc":"2.0","id":1,"method":null,"result":{}}`:           response,
		`{"jsonrpc":"2.0","id":1}`:                                     "",
		`{"jsonrpc":"2.0","result":{}}`:                                "",
		`{}`:                                                           "",
		` {"jsonrpc":"2.0" , "method" : "m" , "params" : [ 1 , {} ]} `: notification,
	} {
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		for kind, is := range map[string]bool{request: m.IsRequest(), notification: m.IsNotification(), response: m.IsResponse()} {
			if is != (kind == want) {
				t.Errorf("%s: %s is %v", raw, kind, is)
			}
		}
	}
	for _, raw := range []string{``, `[]`, `5`, `{`, `{"a"}`, `{"a":1,}`, `{} {}`, `{"a":01}`, `{"a":"` + "\n" + `"}`, `{a:1}`} {
		if m, err := Parse([]byte(raw)); err == nil {
			t.Errorf("%s was parsed: %+v", raw, m)
		}
	}
}

// TestErrorBesideResult takes a null error for none, and a null result beside
// an error for none either.
func TestErrorBesideResult(t *testing.T) {
	m, _ := Parse([]byte(`{"id":1,"error":null,"result":{"a":1}}`))
	if m.Error != nil || string(m.Result) != `{"a":1}` {
		t.Errorf("result %s, error %s", m.Result, m.Error)
	}
	m, _ = Parse([]byte(`{"id":1,"error":{"code":5},"result":null}`))
	if string(m.Error) != `{"code":5}` {
		t.Errorf("error %s", m.Error)
	}
}

// TestErrors reads error objects, however odd, and gives them back verbatim.
func TestErrors(t *testing.T) {
	for raw, want := range map[string]Error{
		`{"code":-32602,"message":"m","data":{"a":1.0},"x":1}`: {Code: -32602, Message: "m", Data: json.RawMessage(`{"a":1.0}`)},
		`{"code":"x","message":5}`:                             {Code: CodeInternal},
		`{"code":1.0,"message":"<\ud800>"}`:                    {Code: CodeInternal, Message: "<\uFFFD>"},
		`"boom"`:                                               {Code: CodeInternal},
		`null`:                                                 {Code: CodeInternal},
	} {
		e := ParseError(json.RawMessage(raw))
		if e.Code != want.Code || e.Message != want.Message || string(e.Data) != string(want.Data) {
			t.Errorf("%s: %+v", raw, e)
		}
		if string(e.JSON()) != raw {
			t.Errorf("%s became %s", raw, e.JSON())
		}
	}
	e := Errorf(CodeBusy, "<%s>", `"x"`)
	e.Data = json.RawMessage(`{"n":1.0}`)
	if got := string(e.JSON()); got != `{"code":-32004,"message":"<\"x\">","data":{"n":1.0}}` {
		t.Errorf("ours is %s", got)
	}
}
