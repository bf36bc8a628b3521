package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// lineMax bounds one line of a stream. It is not a limit of the protocol but of
// memory: a command would have to print this much in one piece.
const lineMax = 1 << 30

// line is one of a stream: a command, or a piece of output.
type line struct {
	command *Command
	stream  string // stdout, stderr
	data    string
}

// lines reads ndjson.
type lines struct {
	c       *Client
	op      string
	session string
	body    io.ReadCloser
	br      *bufio.Reader
}

// asking lets the service be asked about a command whenever the stream is
// silent for quietTime. A stream that goes on so after the command has ended, or
// when that is not to be learned, is broken off.
func (l *lines) asking(session, id string) {
	b, ok := l.body.(received)
	if !ok {
		return
	}
	b.g.asking(func(ctx context.Context) bool {
		k, err := l.c.Command(ctx, session, id)
		return err == nil && !k.Exited()
	})
}

// stream asks for ndjson. The caller closes it.
func (c *Client) stream(ctx context.Context, r call, session, after string) (*lines, error) {
	at, err := idPath("/v2/sandboxes/sessions/", "session id", session, after)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.op, err)
	}
	r.path, r.session, r.timeout, r.slides = at, session, quietTime, true
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-ndjson" {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, errorMax)) // a part of the words is better than none
		_ = resp.Body.Close()
		return nil, c.nonsense(r, resp, "the answer is not the stream that was expected, but "+clip(resp.Header.Get("Content-Type"), 100), text)
	}
	return &lines{c: c, op: r.op, session: session, body: resp.Body, br: bufio.NewReaderSize(resp.Body, 64<<10)}, nil
}

func (l *lines) close() { _ = l.body.Close() } // the answer is of no more use

// next reports the next line; io.EOF is a stream that ended between lines.
// Lines that say nothing to us are skipped.
func (l *lines) next() (line, error) {
	for {
		text, err := l.read()
		if err != nil {
			return line{}, err
		}
		var in struct {
			Command *Command        `json:"command"`
			Stream  string          `json:"stream"`
			Data    json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(text, &in); err != nil {
			return line{}, &Error{Op: l.op, SessionID: l.session, Message: "a line of the stream is not JSON", Raw: clip(l.c.clean(string(text[:min(len(text), rawMax)])), rawMax)}
		}
		switch {
		case in.Command != nil:
			return line{command: in.Command}, nil
		case in.Stream == "error":
			return line{}, l.failure(in.Data)
		case in.Stream == "stdout" || in.Stream == "stderr":
			var data string
			if err := json.Unmarshal(in.Data, &data); err != nil {
				return line{}, &Error{Op: l.op, SessionID: l.session, Message: "output that is not text"}
			}
			return line{stream: in.Stream, data: data}, nil
		}
	}
}

// read reports one line that is not blank. A line that is cut short is
// io.ErrUnexpectedEOF, unless it is JSON as it is.
func (l *lines) read() ([]byte, error) {
	for {
		var text []byte
		for {
			part, err := l.br.ReadSlice('\n')
			text = append(text, part...)
			if len(text) > lineMax {
				return nil, &Error{Op: l.op, SessionID: l.session, Message: "a line of the stream is larger than 1 GiB"}
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			switch text = bytes.TrimSpace(text); {
			case len(text) > 0 && json.Valid(text):
				return text, nil // what was wrong shows with the next read
			case len(text) > 0 && errors.Is(err, io.EOF):
				return nil, io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil
		}
	}
}

func (l *lines) failure(data json.RawMessage) error {
	var in struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	e := &Error{Op: l.op, SessionID: l.session, Raw: clip(l.c.clean(string(data[:min(len(data), rawMax)])), rawMax)}
	if json.Unmarshal(data, &in) == nil {
		e.Code, e.Message = clip(l.c.clean(in.Code), 100), clip(l.c.clean(in.Message), messageMax)
	}
	return e
}

// Output receives what a command prints. stream is "stdout" or "stderr"; data is
// text, in which the service has replaced what was not UTF-8. An error ends the
// stream and comes back.
type Output func(stream string, data []byte) error

// outputError is one of an Output.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// follower delivers each byte of a command's output once, however often the
// service sends it.
type follower struct {
	out       Output
	delivered map[string]int64 // bytes of each stream that were
	told      map[string]int64 // bytes of each stream in the current response
}

func newFollower(out Output) *follower {
	return &follower{out: out, delivered: map[string]int64{}, told: map[string]int64{}}
}

// again begins another telling from the start.
func (f *follower) again() { clear(f.told) }

// take delivers what of l is new.
func (f *follower) take(l line) error {
	from := f.delivered[l.stream] - f.told[l.stream]
	f.told[l.stream] += int64(len(l.data))
	if from >= int64(len(l.data)) {
		return nil
	}
	fresh := l.data[max(0, from):]
	f.delivered[l.stream] += int64(len(fresh))
	if f.out == nil {
		return nil
	}
	if err := f.out(l.stream, []byte(fresh)); err != nil {
		return &outputError{err}
	}
	return nil
}

// got is how much was delivered, to see that something goes on.
func (f *follower) got() (n int64) {
	for _, d := range f.delivered {
		n += d
	}
	return n
}

// Logs passes on a command's output from its start until it ends. A stream that
// breaks is reopened, and nothing is delivered twice.
func (c *Client) Logs(ctx context.Context, session, id string, out Output) error {
	return c.follow(ctx, session, id, newFollower(out))
}

// recoveries bounds how often in a row a stream may break without a byte; one
// that stood this long counts as one that brought something, for gateways cut
// what is silent.
const (
	recoveries = 8
	steady     = 30 * time.Second
	silences   = 2 // how often in a row it may be silent instead
)

// follow is Logs behind what f has delivered already.
func (c *Client) follow(ctx context.Context, session, id string, f *follower) error {
	at, err := idPath("/cmd/", "command id", id, "/logs")
	if err != nil {
		return fmt.Errorf("read logs: %w", err)
	}
	for broken := 0; ; broken++ {
		before, began := f.got(), time.Now()
		err := c.tell(ctx, session, id, at, f)
		if err == nil || !isBroken(err) || ctx.Err() != nil {
			return err
		}
		switch {
		case f.got() > before:
			broken = 0
		case isSilent(err):
			broken = max(broken, recoveries-silences)
		case time.Since(began) > steady:
			broken = 0
		}
		if broken >= recoveries {
			return &Error{Op: "read logs", SessionID: session, Code: CodeStreamEnded, Message: "the stream breaks again and again: " + c.network(err).Error()}
		}
		wait, _ := c.backoff(nil, min(broken, retries-1))
		if err := pause(ctx, wait); err != nil {
			return fmt.Errorf("read logs: %w", err)
		}
	}
}

// tell reads one telling to its end.
func (c *Client) tell(ctx context.Context, session, id, at string, f *follower) error {
	l, err := c.stream(ctx, call{op: "read logs", method: http.MethodGet, repeat: always}, session, at)
	if err != nil {
		return err
	}
	defer l.close()
	l.asking(session, id)
	f.again()
	for {
		in, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if in.command == nil {
			if err := f.take(in); err != nil {
				return err
			}
		}
	}
}

// isBroken says that a stream broke off, which says nothing about the command.
func isBroken(err error) bool {
	var e *Error
	var o *outputError
	switch {
	case errors.As(err, &o):
		return false
	case errors.As(err, &e) && e.Status != 0:
		return e.Status >= 500 || e.Status == http.StatusTooManyRequests
	case errors.As(err, &e):
		return e.Code == "sandbox_stream_closed" || e.Code == CodeStreamEnded
	}
	return !errors.Is(err, ErrInvalid)
}
