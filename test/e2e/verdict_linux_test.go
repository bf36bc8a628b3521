package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"egressd/test/e2e/job"
)

// want is what every door must say to a row.
type want int

const (
	deny  want = iota // 403, SOCKS 2, no such name
	allow             // the canary is reached
	bad               // 400, SOCKS 1: cannot be read one way only
	cut               // the door opened, then the client said something that ends the flow
)

// row is one request and its verdict.
type row struct {
	name   string
	host   string // as the client spells it
	port   int
	say    job.Payload
	want   want
	reason string // of the events; "" any

	doors string // c CONNECT, h absolute-form, s SOCKS5, 4 SOCKS4a, d direct; "" all that can carry it
	asks  bool   // the name is allowed, so a DNS question upstream is right even though the answer is not
	dials bool   // dialled before the client speaks, because on such ports the server may speak first
}

// group is a policy and what it says to its rows.
type group struct {
	name  string
	flags []string
	env   func() []string
	rows  []row
}

const defaultDoors = "chs4d"

var doorOps = map[rune]string{'c': "door.connect", 'h': "door.http", 's': "door.socks5", '4': "door.socks4", 'd': "door.direct"}

// through lists the doors that can carry the row's payload.
func (r row) through() string {
	doors := r.doors
	if doors == "" {
		doors = defaultDoors
		if strings.Contains(r.host, ":") {
			doors = "csd" // neither SOCKS4 nor absolute-form spell IPv6 the way the job does
		}
	}
	var can []rune
	for _, d := range doors {
		if d == 'h' && r.say.Kind != "http" {
			continue
		}
		can = append(can, d)
	}
	return string(can)
}

func (r row) jobs(i int) []job.Job {
	var jobs []job.Job
	for _, d := range r.through() {
		host := r.host
		if d == 'c' && strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
			host = "[" + host + "]"
		}
		jobs = append(jobs, job.Job{ID: rowID(i, d), Op: doorOps[d], Host: host, Port: r.port, Payload: r.say})
	}
	return jobs
}

func rowID(i int, door rune) string { return fmt.Sprintf("%d%c", i, door) }

// TestVerdicts sends every row through every door that can carry it. Denied
// rows run in a session of their own, after which nothing may have arrived
// anywhere and no name may have been asked for that the policy does not allow.
func TestVerdicts(t *testing.T) {
	needWorld(t)
	total := checkVerdicts(t, launchGate{}, verdictGroups())
	if total < 150 {
		t.Errorf("the verdict tables have %d rows; fewer than 150 say too little", total)
	}
	t.Logf("%d rows", total)
}

// checkVerdicts sends all rows through at and reports how many there are.
func checkVerdicts(t *testing.T, at gate, groups []group) (total int) {
	t.Helper()
	for _, g := range groups {
		total += len(g.rows)
		t.Run(g.name, func(t *testing.T) {
			asEachOf(t, at.people(), func(t *testing.T, who person) {
				g.checkDenied(t, who, at)
				g.checkAllowed(t, who, at)
			})
		})
	}
	return total
}

func (g group) session(who person, pick func(row) bool) session {
	s := session{who: who, flags: g.flags}
	if g.env != nil {
		s.env = g.env()
	}
	for i, r := range g.rows {
		if pick(r) {
			s.jobs = append(s.jobs, r.jobs(i)...)
		}
	}
	return s
}

func (g group) checkAllowed(t *testing.T, who person, at gate) {
	s := g.session(who, func(r row) bool { return r.want == allow })
	if len(s.jobs) == 0 {
		return
	}
	e := at.run(t, s)
	for i, r := range g.rows {
		if r.want != allow {
			continue
		}
		for _, d := range r.through() {
			res := e.results[rowID(i, d)]
			if !res.Reached {
				t.Errorf("%s by %s: allowed, but the origin did not answer: %+v\nevent: %v", r.name, doorOps[d], res, e.decision(res.Local, r, d))
				continue
			}
			if ev := e.decision(res.Local, r, d); ev == nil || ev["decision"] != "allowed" {
				t.Errorf("%s by %s: the origin answered, but the events hold %v for client %s\n%s", r.name, doorOps[d], ev, res.Local, e.about(strings.ToLower(r.host)))
			}
		}
	}
}

func (g group) checkDenied(t *testing.T, who person, at gate) {
	s := g.session(who, func(r row) bool { return r.want != allow })
	if len(s.jobs) == 0 {
		return
	}
	before := at.watch()
	e := at.run(t, s)
	seen := before.end(t)
	for i, r := range g.rows {
		if r.want == allow {
			continue
		}
		reasons := map[string]bool{}
		for _, d := range r.through() {
			checkDenial(t, r, d, e.results[rowID(i, d)], e, reasons)
		}
		if len(reasons) > 1 {
			t.Errorf("%s: the doors give different reasons: %v\n%s", r.name, reasons, e.about(strings.ToLower(r.host)))
		}
	}
	g.checkNothingLeft(t, seen, at.asksFirst())
}

// checkDenial checks one door's answer and its event.
func checkDenial(t *testing.T, r row, d rune, res job.Result, e ended, reasons map[string]bool) {
	t.Helper()
	if res.Reached {
		t.Errorf("%s by %s: REACHED the origin: %+v", r.name, doorOps[d], res)
	}
	if status := wantStatus(r.want, d); status != 0 && res.Status != status {
		t.Errorf("%s by %s: status %d, want %d (%+v)", r.name, doorOps[d], res.Status, status, res)
	}
	if d == 'd' && res.Err == "" && res.Status == 3 {
		return // no such name: the DNS rows look at its events
	}
	ev := e.decision(res.Local, r, d)
	if ev == nil {
		if res.Local != "" && d != 'd' {
			t.Errorf("%s by %s: denied, but no event says so (client %s)", r.name, doorOps[d], res.Local)
		}
		return
	}
	reason, _ := ev["reason"].(string)
	if ev["decision"] != "blocked" && !r.dials {
		t.Errorf("%s by %s: denied, but the event says %v", r.name, doorOps[d], ev)
	}
	if r.reason != "" && reason != r.reason && !r.dials {
		t.Errorf("%s by %s: reason %q, want %q", r.name, doorOps[d], reason, r.reason)
	}
	reasons[reason] = true
}

// wantStatus is the word for no at each door; 0 where none is fixed.
func wantStatus(w want, door rune) int {
	table := map[want]map[rune]int{
		deny: {'c': 403, 'h': 403, 's': 2, '4': 91},
		bad:  {'c': 400, 'h': 400, 's': 1, '4': 91},
	}
	return table[w][door]
}

// checkNothingLeft compares what was seen outside with what the rows may cause.
// asksFirst: names that are allowed at another port may be asked for.
func (g group) checkNothingLeft(t *testing.T, seen sightings, asksFirst bool) {
	t.Helper()
	var mayAsk, mayDial []string
	for _, r := range g.rows {
		host := strings.ToLower(strings.TrimSuffix(r.host, "."))
		if r.want == cut || r.asks || asksFirst && r.reason == "port_not_listed" {
			mayAsk = append(mayAsk, host)
		}
		if r.dials {
			mayDial = append(mayDial, fmt.Sprintf("%s:%d", publicAddr(host), r.port))
		}
	}
	for _, q := range seen.questions {
		name, _, _ := strings.Cut(q, " ")
		if !slices.Contains(mayAsk, name) {
			t.Errorf("a denied request caused the DNS question %q upstream", q)
		}
	}
	for _, p := range seen.packets {
		if !slices.Contains(mayDial, p.Dst.String()) && !slices.Contains(mayDial, p.Src.String()) {
			t.Errorf("a denied request caused a packet outside: %s", p)
		}
	}
	for _, v := range seen.visits {
		if v.Bytes != "" || v.SNI != "" || v.Host != "" {
			t.Errorf("a denied request said something to an origin: %+v", v)
		}
	}
}
