package why

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// Bounds of what is read of the events.
const (
	maxLine  = 1 << 20 // bytes
	maxKinds = 64      // refusals that are told apart
)

// refusal is one kind of refusal in a run.
type refusal struct {
	port   uint16 // 0: only the name was asked for
	reason policy.Reason
	method string
	path   string
}

// refusals are those of one run towards one host.
type refusals struct {
	session string
	order   []refusal
	count   map[refusal]int64
	text    map[refusal]string // what to say of it
	last    time.Time
	allowed int64
}

// Look reads the events of runs, and says what the last of them was refused at host
// and port; port 0 is any. An error is a line that is no event.
func Look(events io.Reader, host policy.Host, port uint16) (Answer, error) {
	var run refusals
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return Answer{}, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Session != run.session {
			run = refusals{session: e.Session, count: make(map[refusal]int64), text: make(map[refusal]string)}
		}
		run.add(&e, host, port)
	}
	if err := lines.Err(); err != nil {
		return Answer{}, err
	}
	return run.answer(host, port), nil
}

// add counts e if it is about host and port.
func (r *refusals) add(e *event.Event, host policy.Host, port uint16) {
	var (
		v   event.Verdict
		req policy.Request
		k   refusal
		n   int64
	)
	switch b := e.Body.(type) {
	case *event.Connection:
		v, n = b.Verdict, b.Repeated
		req = policy.Request{Host: b.Host, Port: b.Port, Addr: b.Addr.Addr(), Method: b.Method, Path: b.Path}
		k = refusal{port: b.Port, reason: b.Reason}
		if b.Reason == policy.ReasonMethodNotListed || b.Reason == policy.ReasonPathNotListed {
			k.method, k.path = b.Method, b.Path
		}
	case *event.Query:
		v, n = b.Verdict, b.Repeated
		req = policy.Request{Host: b.Host, Addr: b.Addr}
		k = refusal{reason: b.Reason}
	default:
		return
	}
	if req.Host != host || port != 0 && k.port != 0 && k.port != port {
		return
	}
	if v.Decision == event.Allowed {
		r.allowed++
		return
	}
	if _, known := r.count[k]; !known {
		if len(r.order) == maxKinds {
			return
		}
		r.order = append(r.order, k)
		r.text[k] = describe(k, v, req)
	}
	r.count[k] += max(n, 1)
	r.last = e.Time
}

// describe says why, and what to type.
func describe(k refusal, v event.Verdict, req policy.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  reason  %s: %s\n", k.reason, explain.Meaning(k.reason))
	if v.Rule != nil {
		fmt.Fprintf(&b, "  rule    %s   (%s)\n", cli.Safe(v.Rule.Text), cli.Safe(v.Rule.Pos.String()))
	}
	if rule := (policy.Decision{Reason: k.reason}).Suggest(req); rule != "" && !strings.HasPrefix(rule, "raw:") {
		fmt.Fprintf(&b, "  to allow it, add:\n    %s", policyflags.Spell([]string{rule}))
		if k.port == 0 {
			b.WriteString(policyflags.UnknownPort)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *refusals) answer(host policy.Host, port uint16) Answer {
	var b strings.Builder
	for _, k := range r.order {
		place := place(host, k.port)
		if k.method != "" {
			place = cli.Safe(k.method) + " " + place + cli.Safe(k.path)
		}
		fmt.Fprintf(&b, "denied   %s   %s\n%s", place, times(r.count[k]), r.text[k])
	}
	switch {
	case len(r.order) > 0:
		fmt.Fprintf(&b, "last refused at %s\n", r.last.Local().Format(time.DateTime))
	case r.allowed > 0:
		fmt.Fprintf(&b, "allowed  %s   %s; nothing was refused\n", host, times(r.allowed))
	default:
		fmt.Fprintf(&b, "the last run did not ask for %s\n", place(host, port))
	}
	return Answer{Allowed: len(r.order) == 0 && r.allowed > 0, Text: b.String()}
}

func place(host policy.Host, port uint16) string {
	if port == 0 {
		return host.String()
	}
	return net.JoinHostPort(host.String(), strconv.Itoa(int(port)))
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return strconv.FormatInt(n, 10) + " times"
}
