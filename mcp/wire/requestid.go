package wire

import (
	"context"
	"encoding/json"
)

type requestIDKey struct{}

func withRequestID(ctx context.Context, id json.RawMessage) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the client's id of the request that a Router handles with ctx, nil
// for none.
func RequestID(ctx context.Context) json.RawMessage {
	id, _ := ctx.Value(requestIDKey{}).(json.RawMessage)
	return id
}
