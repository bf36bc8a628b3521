// Package notify tells of each refusal in one line, while the program runs.
//
//	sinks = append(sinks, &notify.Sink{W: os.Stderr})
package notify

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// maxLines bounds what is told in one run. The summary and the events have all of it.
const maxLines = 200

// key is what is told once.
type key struct {
	host   policy.Host
	port   uint16
	reason policy.Reason
	method string
}

// Sink is an event sink. It writes a line to W for each new kind of refusal, and drops
// the line if that fails. Safe for concurrent use.
type Sink struct {
	W io.Writer

	mu   sync.Mutex
	told map[key]bool
}

// Emit implements [event.Sink]. It never fails.
func (s *Sink) Emit(e event.Event) error {
	var (
		v   event.Verdict
		req policy.Request
	)
	switch b := e.Body.(type) {
	case *event.Connection:
		v, req = b.Verdict, policy.Request{Host: b.Host, Port: b.Port, Method: b.Method, Path: b.Path}
		if req.Host.IsZero() {
			req.Host = policy.HostFromAddr(b.Addr.Addr())
		}
	case *event.Query:
		v, req = b.Verdict, policy.Request{Host: b.Host}
	}
	if req.Host.IsZero() || v.Decision != event.Blocked || v.Reason.Class() != policy.ClassDenied {
		return nil
	}
	if line := s.line(key{req.Host, req.Port, v.Reason, req.Method}, v, req); line != "" {
		_, _ = io.WriteString(s.W, line) // nobody reads it
	}
	return nil
}

// line is what to say of k; "": it was said, or enough is.
func (s *Sink) line(k key, v event.Verdict, req policy.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.told[k] || len(s.told) > maxLines:
		return ""
	case s.told == nil:
		s.told = make(map[key]bool)
	}
	s.told[k] = true
	if len(s.told) > maxLines {
		return "launch: blocked: more than these; the summary at the end has them\n"
	}
	place, ask := req.Host.String(), ""
	if req.Port != 0 {
		place = net.JoinHostPort(place, strconv.Itoa(int(req.Port)))
	}
	if rule := (policy.Decision{Reason: v.Reason}).Suggest(req); rule != "" && !strings.HasPrefix(rule, "raw:") && v.Reason != policy.ReasonIPProhibited {
		ask = "; to allow it: " + policyflags.Spell([]string{rule})
		if req.Port == 0 {
			ask += policyflags.UnknownPort
		}
	}
	return fmt.Sprintf("launch: blocked %s: %s%s\n", cli.Safe(place), explain.Meaning(v.Reason), ask)
}
