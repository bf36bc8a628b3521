package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Exit statuses of curl, as its manual lists them.
const (
	exitProtocol  = 1
	exitUsage     = 2
	exitURL       = 3
	exitResolve   = 6
	exitConnect   = 7
	exitWeird     = 8
	exitPartial   = 18
	exitHTTP      = 22
	exitWrite     = 23
	exitRead      = 26
	exitMemory    = 27
	exitTimeout   = 28
	exitRange     = 33
	exitTLS       = 35
	exitRedirects = 47
	exitEmpty     = 52
	exitReceive   = 56
	exitVerify    = 60
	exitEncoding  = 61
	exitTooLarge  = 63
	exitRewind    = 65
	exitLogin     = 67
	exitCAFile    = 77
)

// failure is how a transfer ends that does not end well: curl's exit status and
// words. denied says that the gate refused it, which no retry changes.
type failure struct {
	code   int
	text   string
	denied bool
}

func (f *failure) Error() string { return f.text }

func fail(code int, format string, args ...any) *failure {
	return &failure{code: code, text: fmt.Sprintf(format, args...)}
}

// clocks measure one transfer.
type clocks struct {
	now   func() time.Time
	start time.Time
}

func (c clocks) elapsed() time.Duration { return c.now().Sub(c.start) }

var (
	errTotal   = errors.New("the time of the transfer is over")
	errConnect = errors.New("the time for connecting is over")
)

// receiving is what a failed read of an answer means; got is how much had come.
func receiving(ctx context.Context, c clocks, err error, got int64) *failure {
	if f := timedOut(ctx, c, got); f != nil {
		return f
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe):
		return fail(exitEmpty, "Empty reply from server")
	}
	return fail(exitReceive, "Recv failure: Connection reset by peer")
}

// timedOut is the failure where ctx has ended, nil where not.
func timedOut(ctx context.Context, c clocks, got int64) *failure {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, errConnect):
		return fail(exitTimeout, "Connection timed out after %d milliseconds", c.elapsed().Milliseconds())
	case errors.Is(cause, errTotal):
		return fail(exitTimeout, "Operation timed out after %d milliseconds with %d bytes received", c.elapsed().Milliseconds(), got)
	}
	return fail(exitTimeout, "Operation was aborted")
}
