package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"egressd/event/internal/line"
	"egressd/policy"
	"egressd/policy/files"
)

// UnmarshalJSON reads one event, as [Event.MarshalJSON] or a line of the audit trail
// spells it. A key, a type, a word or an address that no event has is an error.
// A string that a line cut stays cut.
func (e *Event) UnmarshalJSON(data []byte) (err error) {
	*e, err = decode(data)
	return err
}

func decode(data []byte) (Event, error) {
	var l line.Line
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	if dec.More() {
		return Event{}, fmt.Errorf("event: more than one value")
	}
	r := reader{line: &l}
	e := Event{
		Time: l.Time, Seq: l.Seq, Session: l.Session, Isolation: l.Isolation, Policy: l.Policy,
		Body: r.body(),
	}
	if r.err != nil {
		return Event{}, fmt.Errorf("event: %w", r.err)
	}
	var err error
	if e.origin, err = originOf(l.Origin); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	return e, nil
}

// originOf reads who wrote a line. Lines from before there was a version have none of it.
func originOf(l line.Origin) (*origin, error) {
	switch l.V {
	case 0:
		if l.Boot != "" || l.Resource != nil {
			return nil, errors.New("a line with an origin has no v")
		}
		return nil, nil
	case schemaVersion:
		return newOrigin(l.Boot, l.Resource, math.MaxInt), nil // what a line cut stays cut
	}
	return nil, fmt.Errorf("a line of version %d: this program reads version %d", l.V, schemaVersion)
}

// reader turns the words of a line into types and keeps the first error.
type reader struct {
	line *line.Line
	err  error
}

func (r *reader) body() Body {
	l := r.line
	took := time.Duration(l.DurationMS) * time.Millisecond
	switch l.Type {
	case "network.connected":
		if l.Door == DoorKernel.String() {
			return r.packet()
		}
		return r.connection()
	case "network.closed":
		return &Close{
			Flow: l.Flow, Door: r.door(), Host: r.host(l.Host), Port: l.Port,
			BytesOut: l.BytesOut, BytesIn: l.BytesIn, Duration: took, Error: l.Error,
		}
	case "dns.query":
		return r.query()
	case "command.executed":
		return &Command{ArgvHash: l.ArgvHash, Files: l.Files, PolicyFiles: l.PolicyFiles, Limits: l.Limits}
	case "run.completed":
		return &RunCompleted{ExitCode: r.exitCode(), Duration: took, LimitsMet: l.LimitsMet}
	case "run.failed":
		return &RunFailed{ExitCode: r.exitCode(), Duration: took, Error: l.Error, LimitsMet: l.LimitsMet}
	case "file.changed":
		return &FileChanged{Path: l.Path, Change: word(r, "change", l.Change, Added, Deleted)}
	case "file.refused":
		return r.fileRefused()
	case "file.replaced":
		return &FileReplaced{Path: l.Path, Was: l.Was, Now: l.Now, Exposed: l.Exposed}
	case "policy.loaded":
		return &PolicyLoaded{Name: l.Name, Added: l.Added, Removed: l.Removed}
	case "policy.rejected":
		return &PolicyRejected{Name: l.Name, Error: l.Error}
	case "record.resumed":
		return &recordResumed{Lost: l.Lost, Duration: took, Error: l.Error}
	case "daemon.started":
		return &DaemonStarted{Version: l.Version}
	case "daemon.stopped":
		return &DaemonStopped{Version: l.Version, Duration: took, Error: l.Error}
	case "session.opened":
		return &SessionOpened{Name: l.Name, Client: l.Client, ArgvHash: l.ArgvHash}
	case "session.refused":
		return &SessionRefused{Name: l.Name, Client: l.Client, ArgvHash: l.ArgvHash, Duration: took, Error: l.Error}
	case "session.closed":
		return &SessionClosed{Name: l.Name, Client: l.Client, ArgvHash: l.ArgvHash, Duration: took, Error: l.Error}
	}
	r.fail("type", l.Type)
	return nil
}

func (r *reader) connection() *Connection {
	l := r.line
	return &Connection{
		Flow: l.Flow, Door: r.door(), Verdict: r.verdict(),
		Host: r.host(l.Host), Port: l.Port, Addr: r.addrPort("addr", l.Addr), Via: l.Via, Server: r.host(l.Server),
		Client: r.addrPort("client", l.Client), Method: l.Method, Path: l.Path, Error: l.Error,
		Repeated: l.Repeated, First: r.first(),
	}
}

func (r *reader) first() (t time.Time) {
	if r.line.First != nil {
		t = *r.line.First
	}
	return t
}

func (r *reader) packet() *Packet {
	l := r.line
	if v := r.verdict(); v != new(Packet).verdict() {
		r.fail("reason", l.Decision+" "+l.Reason)
	}
	return &Packet{Proto: l.Proto, Dst: r.addr("addr", l.Addr), Port: l.Port, Src: r.addr("client", l.Client), Count: l.Count}
}

func (r *reader) query() *Query {
	l := r.line
	q := &Query{
		Verdict: r.verdict(), Addr: r.addr("addr", l.Addr), Client: r.addrPort("client", l.Client),
		QType: l.QType, RCode: NoAnswer, Repeated: l.Repeated, First: r.first(),
	}
	if l.RCode != "" {
		q.RCode = word(r, "rcode", l.RCode, NoError, BadVers)
	}
	if l.Door != DoorDNS.String() {
		r.fail("door", l.Door)
	}
	// A name in another spelling was not judged: it is kept as asked.
	if h, err := policy.ParseHost(l.Host); err == nil && h.String() == l.Host {
		q.Host = h
	} else {
		q.Asked = l.Host
	}
	return q
}

func (r *reader) fileRefused() *FileRefused {
	l := r.line
	f := &FileRefused{
		Path: l.Path, Reason: word(r, "reason", l.Reason, files.NoPolicy, files.Socket),
		Rule: files.Rule{Path: l.Rule, At: l.RulePos}, Count: l.Count,
	}
	switch l.Wanted {
	case wantedWords[files.ReadOnly]:
		f.Wanted = files.ReadOnly
	case wantedWords[files.ReadWrite]:
		f.Wanted = files.ReadWrite
	default:
		r.fail("wanted", l.Wanted)
	}
	return f
}

func (r *reader) verdict() Verdict {
	l := r.line
	v := Verdict{
		Decision: word(r, "decision", l.Decision, Blocked, Allowed),
		Reason:   word(r, "reason", l.Reason, policy.ReasonNoPolicy, policy.ReasonInternal),
		Audit:    l.Audit,
	}
	if l.Rule != "" || l.RulePos != "" {
		v.Rule = &policy.Rule{Text: l.Rule, Pos: policy.Pos{File: l.RulePos}}
	}
	return v
}

func (r *reader) door() Door {
	if r.line.Door == "" {
		return 0
	}
	return word(r, "door", r.line.Door, DoorConnect, DoorKernel)
}

// word reports which value from first to last s spells.
func word[T interface {
	~uint8
	String() string
}](r *reader, key, s string, first, last T) T {
	for v := first; v <= last; v++ {
		if v.String() == s {
			return v
		}
	}
	r.fail(key, s)
	return first
}

func (r *reader) host(s string) policy.Host {
	if s == "" {
		return policy.Host{}
	}
	h, err := policy.ParseHost(s)
	if err != nil {
		r.keep(err)
	}
	return h
}

func (r *reader) addr(key, s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		r.fail(key, s)
	}
	return a
}

func (r *reader) addrPort(key, s string) netip.AddrPort {
	if s == "" {
		return netip.AddrPort{}
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		r.fail(key, s)
	}
	return a
}

func (r *reader) exitCode() int {
	if r.line.ExitCode == nil {
		r.fail("exit_code", "")
		return 0
	}
	return *r.line.ExitCode
}

func (r *reader) fail(key, s string) { r.keep(fmt.Errorf("%q is not a valid %s", s, key)) }

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}
