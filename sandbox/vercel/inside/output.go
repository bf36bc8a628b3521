package inside

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"sync"

	"egressd/event"
)

// Bounds of what is read of a gate, all of it the program's to forge.
const (
	maxLine  = 64 << 10  // bytes of one line
	maxTotal = 256 << 20 // bytes of all
	maxWords = 4 << 10   // bytes that are kept of what it complains about
)

var (
	errTooLong = errors.New("the gate in the sandbox printed a line without end")
	errTooMuch = errors.New("the gate in the sandbox printed more than 256 MiB")
)

// Output takes what a gate prints. Write is called by one goroutine; the other
// methods by any.
type Output struct {
	to   event.Sink
	like event.Event

	parts map[string][]byte // of a stream, without its line's end
	total int64

	ready chan netip.AddrPort
	once  sync.Once
	proxy netip.AddrPort // where it listens, until it is ready

	mu    sync.Mutex
	words []byte
}

// NewOutput passes decisions and ends of flows to the sink, which may be nil; each
// is of the session and isolation of like. The time is that of their arrival.
func NewOutput(to event.Sink, like event.Event) *Output {
	return &Output{to: to, like: like, parts: map[string][]byte{}, ready: make(chan netip.AddrPort, 1)}
}

// Ready receives where the gate listens, once it does.
func (o *Output) Ready() <-chan netip.AddrPort { return o.ready }

// Words are the last lines that are neither events nor notes: why it ended.
func (o *Output) Words() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.TrimSpace(o.words))
}

// Write takes what came on a stream. After an error nothing more is to be read: the
// gate is to be ended, so that no flow goes unrecorded.
func (o *Output) Write(stream string, data []byte) error {
	if o.total += int64(len(data)); o.total > maxTotal {
		return errTooMuch
	}
	for {
		head, rest, whole := bytes.Cut(data, []byte("\n"))
		if len(o.parts[stream])+len(head) > maxLine {
			return errTooLong
		}
		o.parts[stream] = append(o.parts[stream], head...)
		if !whole {
			return nil
		}
		line := o.parts[stream]
		if err := o.line(stream, line); err != nil {
			return err
		}
		o.parts[stream], data = line[:0], rest
	}
}

func (o *Output) line(stream string, line []byte) error {
	if stream == "stderr" {
		o.note(line)
		return nil
	}
	var e event.Event
	if json.Unmarshal(line, &e) != nil {
		o.keep(line)
		return nil
	}
	switch e.Body.(type) {
	case *event.Connection, *event.Close, *event.Query, *event.Packet:
	default:
		return nil // about itself
	}
	if o.to == nil {
		return nil
	}
	return o.to.Emit(event.Event{Session: o.like.Session, Isolation: o.like.Isolation, Policy: e.Policy, Body: e.Body})
}

// note reads a line of the gate's log.
func (o *Output) note(line []byte) {
	var n struct{ Level, Msg, Door, Addr string }
	if json.Unmarshal(line, &n) != nil {
		o.keep(line)
		return
	}
	switch {
	case n.Msg == "listening" && n.Door == "proxy":
		o.proxy, _ = netip.ParseAddrPort(n.Addr)
	case n.Msg == "ready" && o.proxy.IsValid() && o.proxy.Addr().IsLoopback():
		o.once.Do(func() { o.ready <- o.proxy })
	case n.Level == "ERROR":
		o.keep(line)
	}
}

func (o *Output) keep(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.words = append(append(o.words, line...), '\n')
	o.words = o.words[max(0, len(o.words)-maxWords):]
}
