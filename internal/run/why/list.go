package why

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/policy"
)

// denied is one line of a list.
type denied struct {
	host   policy.Host
	port   uint16 // 0: only the name was asked for
	reason policy.Reason
}

// List reads the events of runs, and lists what the last of them was refused, a
// destination a line. An error is a line that is no event.
func List(events io.Reader) (string, error) {
	var (
		session string
		order   []denied
		count   map[denied]int64
	)
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		if e.Session != session || count == nil {
			session, order, count = e.Session, nil, make(map[denied]int64)
		}
		d, times := deniedBy(&e)
		if times == 0 {
			continue
		}
		if count[d] == 0 {
			if len(order) == maxKinds {
				continue
			}
			order = append(order, d)
		}
		count[d] += times
	}
	if len(order) == 0 && lines.Err() == nil {
		return "nothing was refused\n", nil
	}
	var b strings.Builder
	for _, d := range order {
		fmt.Fprintf(&b, "%s   %s   %s\n", cli.Safe(place(d.host, d.port)), times(count[d]), explain.Meaning(d.reason))
	}
	return b.String(), lines.Err()
}

// deniedBy is what e refused, and how often; 0: nothing that a policy decides.
func deniedBy(e *event.Event) (d denied, times int64) {
	var v event.Verdict
	switch b := e.Body.(type) {
	case *event.Connection:
		d, v, times = denied{b.Host, b.Port, b.Reason}, b.Verdict, b.Repeated
		if d.host.IsZero() {
			d.host = policy.HostFromAddr(b.Addr.Addr())
		}
	case *event.Query:
		d, v, times = denied{b.Host, 0, b.Reason}, b.Verdict, b.Repeated
	}
	if d.host.IsZero() || v.Decision == event.Allowed || v.Reason.Class() != policy.ClassDenied {
		return denied{}, 0
	}
	return d, max(times, 1)
}
