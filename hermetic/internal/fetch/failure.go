package fetch

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
	ExitProtocol  = 1
	ExitUsage     = 2
	ExitURL       = 3
	ExitResolve   = 6
	ExitConnect   = 7
	ExitWeird     = 8
	ExitPartial   = 18
	ExitHTTP      = 22
	ExitWrite     = 23
	ExitRead      = 26
	ExitMemory    = 27
	ExitTimeout   = 28
	ExitRange     = 33
	ExitTLS       = 35
	ExitRedirects = 47
	ExitEmpty     = 52
	ExitReceive   = 56
	ExitVerify    = 60
	exitEncoding  = 61
	ExitTooLarge  = 63
	exitRewind    = 65
	ExitLogin     = 67
	ExitCAFile    = 77
)

// Failure is how a transfer ends that does not end well: curl's exit status and
// words. denied says that the gate refused it, which no retry changes.
type Failure struct {
	Code   int
	Text   string
	Denied bool
}

func (f *Failure) Error() string { return f.Text }

// Fail is a failure with an exit status of curl's.
func Fail(code int, format string, args ...any) *Failure {
	return &Failure{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Clocks measure one transfer.
type Clocks struct {
	Now   func() time.Time
	Start time.Time
}

// Elapsed is the time since the transfer began.
func (c Clocks) Elapsed() time.Duration { return c.Now().Sub(c.Start) }

var (
	ErrTotal   = errors.New("the time of the transfer is over")
	errConnect = errors.New("the time for connecting is over")
)

// receiving is what a failed read of an answer means; got is how much had come.
func receiving(ctx context.Context, c Clocks, err error, got int64) *Failure {
	if f := TimedOut(ctx, c, got); f != nil {
		return f
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe):
		return Fail(ExitEmpty, "Empty reply from server")
	}
	return Fail(ExitReceive, "Recv failure: Connection reset by peer")
}

// TimedOut is the failure where ctx has ended, nil where not.
func TimedOut(ctx context.Context, c Clocks, got int64) *Failure {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, errConnect):
		return Fail(ExitTimeout, "Connection timed out after %d milliseconds", c.Elapsed().Milliseconds())
	case errors.Is(cause, ErrTotal):
		return Fail(ExitTimeout, "Operation timed out after %d milliseconds with %d bytes received", c.Elapsed().Milliseconds(), got)
	}
	return Fail(ExitTimeout, "Operation was aborted")
}

// Pause waits for d; false: ctx has ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
