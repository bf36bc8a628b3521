package event

import (
	"math"
	"net/netip"
	"strconv"
	"time"

	"egressd/policy"
)

// maxStringBytes bounds every string of a line before it is escaped. What is
// cut off is counted at the end of the string. Implementation constant: a host
// has at most 253 bytes; a longer path or error says nothing more.
const maxStringBytes = 2048

// timeLayout is RFC 3339 with microseconds and always the same width, so that
// lines sort as text.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// appendLine appends e as one line of JSON, ending in a newline.
func appendLine(b []byte, e *Event) []byte {
	return append(appendObject(b, e, maxStringBytes), '\n')
}

// MarshalJSON encodes e as in a line of the audit trail, but cuts no string:
// for a process that hands its events to another. UnmarshalJSON reads it.
func (e Event) MarshalJSON() ([]byte, error) { return appendObject(nil, &e, math.MaxInt), nil }

// appendObject appends e as one JSON object. The order of the keys is the same
// for all types, is that of internal/line, and never changes. A zero value is
// left out.
//
// Threat: a client puts line breaks, terminal escapes, invalid UTF-8 or
// separators that only some readers honour into a host, a path or an SNI, to
// forge or hide a line -> everything outside printable ASCII is escaped, so a
// line holds no byte that any reader takes for a line's end. Left over: a
// reader that decodes a line and prints the string raw must escape it again.
func appendObject(b []byte, e *Event, most int) []byte {
	o := object{b: b, most: most}
	o.b = append(o.b, `{"time":"`...)
	o.b = e.Time.UTC().AppendFormat(o.b, timeLayout)
	o.b = append(o.b, `","seq":`...)
	o.b = strconv.AppendUint(o.b, e.Seq, 10)
	o.b = append(o.b, `,"type":`...)
	o.b = appendString(o.b, e.Type(), most)
	o.text("session", e.Session)
	o.text("isolation", e.Isolation)
	switch body := e.Body.(type) {
	case *Connection:
		o.connection(body, e.Policy)
	case *Packet:
		o.packet(body, e.Policy)
	case *Close:
		o.close(body, e.Policy)
	case *Query:
		o.query(body, e.Policy)
	case *FileRefused:
		o.fileRefused(body, e.Policy)
	default:
		o.text("policy", e.Policy)
		o.other(body)
	}
	if e.origin != nil {
		o.b = append(o.b, e.origin.text...)
	}
	return append(o.b, '}')
}

func (o *object) connection(c *Connection, digest string) {
	o.uint("flow", c.Flow)
	o.verdict(c.Door, c.Verdict)
	o.text("policy", digest)
	o.host("host", c.Host)
	o.uint("port", uint64(c.Port))
	o.addrPort("addr", c.Addr)
	o.text("via", c.Via)
	o.host("server", c.Server)
	o.addrPort("client", c.Client)
	o.text("method", c.Method)
	o.text("path", c.Path)
	o.summed(c.Repeated, c.First)
	o.text("error", c.Error)
}

func (o *object) packet(p *Packet, digest string) {
	o.verdict(DoorKernel, p.verdict())
	o.text("policy", digest)
	o.addr("host", p.Dst)
	o.uint("port", uint64(p.Port))
	o.addr("addr", p.Dst)
	o.addr("client", p.Src)
	o.text("proto", p.Proto)
	o.int("count", p.Count)
}

func (o *object) close(c *Close, digest string) {
	o.uint("flow", c.Flow)
	o.text("door", c.Door.String())
	o.text("policy", digest)
	o.host("host", c.Host)
	o.uint("port", uint64(c.Port))
	o.int("bytes_out", c.BytesOut)
	o.int("bytes_in", c.BytesIn)
	o.duration(c.Duration)
	o.text("error", c.Error)
}

func (o *object) query(q *Query, digest string) {
	o.verdict(DoorDNS, q.Verdict)
	o.text("policy", digest)
	if q.Host.IsZero() {
		o.text("host", q.Asked)
	} else {
		o.host("host", q.Host)
	}
	o.addr("addr", q.Addr)
	o.addrPort("client", q.Client)
	o.summed(q.Repeated, q.First)
	o.text("qtype", q.QType)
	o.text("rcode", q.RCode.String())
}

func (o *object) fileRefused(f *FileRefused, digest string) {
	o.text("reason", f.Reason.String())
	o.text("rule", f.Rule.Path)
	o.text("rule_pos", f.Rule.At)
	o.text("policy", digest)
	o.text("path", f.Path)
	o.int("count", f.Count)
	o.text("wanted", wordOf(wantedWords[:], f.Wanted))
}

// other appends the bodies that are about no connection.
func (o *object) other(body Body) {
	switch b := body.(type) {
	case *Command:
		o.text("argv_hash", b.ArgvHash)
		o.texts("files", b.Files)
		o.texts("policy_files", b.PolicyFiles)
		o.text("limits", b.Limits)
	case *RunCompleted:
		o.duration(b.Duration)
		o.exitCode(b.ExitCode)
		o.text("limits_met", b.LimitsMet)
	case *RunFailed:
		o.duration(b.Duration)
		o.text("error", b.Error)
		o.exitCode(b.ExitCode)
		o.text("limits_met", b.LimitsMet)
	case *FileChanged:
		o.text("path", b.Path)
		o.text("change", b.Change.String())
	case *FileReplaced:
		o.text("path", b.Path)
		o.text("was", b.Was)
		o.text("now", b.Now)
		o.flag("exposed", b.Exposed)
	case *PolicyLoaded:
		o.text("name", b.Name)
		o.int("added", b.Added)
		o.int("removed", b.Removed)
	case *PolicyRejected:
		o.text("error", b.Error)
		o.text("name", b.Name)
	case *recordResumed:
		o.duration(b.Duration)
		o.text("error", b.Error)
		o.uint("lost", b.Lost)
	case *DaemonStarted:
		o.text("version", b.Version)
	case *DaemonStopped:
		o.duration(b.Duration)
		o.text("error", b.Error)
		o.text("version", b.Version)
	case *SessionOpened:
		o.session(b.Client, 0, "", b.ArgvHash, b.Name)
	case *SessionRefused:
		o.session(b.Client, b.Duration, b.Error, b.ArgvHash, b.Name)
	case *SessionClosed:
		o.session(b.Client, b.Duration, b.Error, b.ArgvHash, b.Name)
	}
}

func (o *object) session(client string, took time.Duration, failure, argvHash, name string) {
	o.text("client", client)
	o.duration(took)
	o.text("error", failure)
	o.text("argv_hash", argvHash)
	o.text("name", name)
}

func (o *object) verdict(door Door, v Verdict) {
	o.text("door", door.String())
	o.text("decision", v.Decision.String())
	o.text("reason", v.Reason.String())
	if r := v.Rule; r != nil {
		o.text("rule", r.Text)
		o.pos("rule_pos", r.Pos)
	}
	o.flag("audit", v.Audit)
}

func (o *object) summed(count int64, first time.Time) {
	if count == 0 {
		return
	}
	o.int("repeated", count)
	start := o.open("first")
	o.b = first.UTC().AppendFormat(o.b, timeLayout)
	o.end(start)
}

// object is one JSON object in the making.
type object struct {
	b    []byte
	most int // bytes of one string before escaping
}

// key appends one of the names above: nothing in them needs escaping.
func (o *object) key(key string) {
	o.b = append(o.b, ',', '"')
	o.b = append(o.b, key...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(key, s string) {
	if s == "" {
		return
	}
	o.key(key)
	o.b = appendString(o.b, s, o.most)
}

func (o *object) texts(key string, list []string) {
	if len(list) == 0 {
		return
	}
	o.key(key)
	for i, s := range list {
		o.b = append(o.b, "[,"[min(i, 1)])
		o.b = appendString(o.b, s, o.most)
	}
	o.b = append(o.b, ']')
}

func (o *object) flag(key string, v bool) {
	if v {
		o.key(key)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) uint(key string, v uint64) {
	if v == 0 {
		return
	}
	o.key(key)
	o.b = strconv.AppendUint(o.b, v, 10)
}

func (o *object) int(key string, v int64) {
	if v == 0 {
		return
	}
	o.key(key)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) duration(d time.Duration) { o.int("duration_ms", d.Milliseconds()) }

func (o *object) exitCode(code int) {
	o.key("exit_code")
	o.b = strconv.AppendInt(o.b, int64(code), 10)
}

func (o *object) host(key string, h policy.Host) {
	if a := h.Addr(); a.IsValid() {
		o.addr(key, a)
		return
	}
	o.text(key, h.Name())
}

func (o *object) addr(key string, a netip.Addr) {
	if !a.IsValid() {
		return
	}
	start := o.open(key)
	o.b = a.AppendTo(o.b)
	o.end(start)
}

func (o *object) addrPort(key string, a netip.AddrPort) {
	if !a.IsValid() {
		return
	}
	start := o.open(key)
	o.b = a.AppendTo(o.b)
	o.end(start)
}

func (o *object) pos(key string, p policy.Pos) {
	if p == (policy.Pos{}) {
		return
	}
	start := o.open(key)
	o.b = p.AppendTo(o.b)
	o.end(start)
}

// open begins a string whose text the caller appends to o.b as it is, which
// saves a copy; end escapes it, if need be.
func (o *object) open(key string) (start int) {
	o.key(key)
	o.b = append(o.b, '"')
	return len(o.b)
}

func (o *object) end(start int) {
	text := o.b[start:]
	if len(text) <= o.most && isPlain(text) {
		o.b = append(o.b, '"')
		return
	}
	o.b = appendString(o.b[:start-1], string(text), o.most)
}
