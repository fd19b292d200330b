package upstream

import (
	"context"

	"mcpproxy/mcp/wire"
)

// link is one transport to one upstream: a child's pipes, streamable HTTP or
// HTTP with SSE. It moves whole messages and knows nothing of what they mean.
type link interface {
	// Send delivers one message; over HTTP that can take as long as the answer.
	// An error means that the upstream has not processed it. Where a request was
	// delivered and its answer can no longer come, the receiver gets an error
	// answer without Raw.
	Send(ctx context.Context, m outgoing) error
	// Done is closed when the link is dead.
	Done() <-chan struct{}
	// Err tells why the link died; it is nil before Done.
	Err() error
	// Close ends the link and what it started, bounded by ctx.
	Close(ctx context.Context) error
}

// outgoing is one message to an upstream.
type outgoing struct {
	// Frame is the message as JSON, without a newline.
	Frame []byte
	// ID is our request id, 0 for notifications and replies.
	ID int64
	// Method is the method, empty for replies.
	Method string
}

// receiver is called by a link for every message from the upstream, in order
// per stream. during is our id of the request on whose stream the message
// came, 0 where the transport cannot tell. It must not block.
type receiver func(m wire.Message, during int64)

// stream marks a link whose Send hands the message on without waiting for the
// upstream.
type stream interface{ stream() }

func quick(l link) bool {
	_, ok := l.(stream)
	return ok
}
