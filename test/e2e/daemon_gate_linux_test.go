package e2e

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/test/e2e/job"
)

// podGate is an egressd in front of a captured pod, with all its doors.
type podGate struct {
	pod     *pod
	attach  bool // the daemon is in the world and opens its doors inside the pod; else it is a sidecar
	forward bool // DNS answers with real addresses
}

// newPodGate makes a captured pod.
func newPodGate(t *testing.T, attach, forward bool) podGate {
	t.Helper()
	g := podGate{pod: newPod(t), attach: attach, forward: forward}
	g.pod.capture(t)
	return g
}

// doors are where a sidecar listens.
var doors = []string{
	"--listen", "127.0.0.1:3128", "--transparent", "127.0.0.1:3129", "--transparent", "[::1]:3129",
	"--dns", "127.0.0.1:3130", "--dns", "[::1]:3130", "--drain", "1s",
}

// start starts a daemon whose policy the flags are.
func (g podGate) start(t *testing.T, flags, environ []string) *daemon {
	t.Helper()
	dir := daemonDir(t)
	args := slices.Concat(doors, flags)
	if len(flags) == 0 {
		args = append(args, "--deny", "nothing.invalid") // a daemon without a policy does not start
	}
	if g.forward {
		file := filepath.Join(dir, "forward.yaml")
		if err := os.WriteFile(file, []byte("dns:\n  mode: forward\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--policy", file)
	}
	if g.attach {
		return startDaemon(t, nil, dir, environ, append(args, "--netns", g.pod.path)...)
	}
	return startDaemon(t, g.pod, dir, environ, args...)
}

func (g podGate) run(t *testing.T, s session) ended {
	t.Helper()
	d := g.start(t, s.flags, s.env)
	e := g.pod.runProbe(t, session{who: s.who, jobs: s.jobs})
	e.code = d.stop(t)
	e.stderr = d.log.String()
	e.events, e.eventsText = readEvents(t, d.events)
	return e
}

func (g podGate) watch() watch {
	if g.attach {
		return env.world.watch()
	}
	return env.world.watchBy(g.pod.sniffer)
}

func (g podGate) asksFirst() bool { return g.forward }

// people: root and a person where the daemon is a sidecar, which is the way it
// is mostly run; a person elsewhere.
func (g podGate) people() []person {
	all := people()
	if g.attach || g.forward {
		return all[len(all)-1:]
	}
	return all
}

// TestDaemon runs the tables against egressd as platform teams run it: beside
// the agent in its pod, as a user of its own, with the capture rules in place.
// The verdicts are launch's. An ordinary user, who has one uid, gets the daemon
// outside the pod, attached to it.
func TestDaemon(t *testing.T) {
	needWorld(t)
	if env.through {
		return // not about launch
	}
	t.Run("control", func(t *testing.T) {
		p := newPod(t) // without capture
		before := env.world.watchBy(p.sniffer)
		e := p.runProbe(t, session{who: people()[0], jobs: []job.Job{{ID: "out", Op: "door.direct", Host: "11.1.2.3", Port: 9000, Payload: raw("PING\n")}}})
		if !e.results["out"].Reached || len(before.end(t).packets) == 0 {
			t.Errorf("nothing gets out of a pod that nobody captures: %+v; so nothing here proves anything", e.results["out"])
		}
	})
	if os.Geteuid() == 0 {
		t.Run("sidecar", func(t *testing.T) {
			g := newPodGate(t, false, false)
			checkTables(t, g)
			t.Run("dns", func(t *testing.T) { checkDNS(t, g) })
		})
		t.Run("sidecar, dns forward", func(t *testing.T) { checkTables(t, newPodGate(t, false, true)) })
	}
	t.Run("attached", func(t *testing.T) {
		g := newPodGate(t, true, false)
		before := env.world.watchBy(g.pod.sniffer)
		checkTables(t, g)
		t.Run("dns", func(t *testing.T) { checkDNS(t, g) })
		for _, p := range before.end(t).packets {
			t.Errorf("a packet left the pod: %s", p)
		}
	})
}

// byOne is the gate with one client: who it is makes no difference to framing.
type byOne struct{ podGate }

func (b byOne) people() []person { return lastOf(b.podGate.people()) }

func lastOf(all []person) []person { return all[len(all)-1:] }

func checkTables(t *testing.T, g podGate) {
	t.Helper()
	groups := verdictGroups()
	if g.forward {
		for i := range groups {
			groups[i].rows = forwardRows(groups[i].rows)
		}
	}
	t.Run("verdicts", func(t *testing.T) { checkVerdicts(t, g, groups) })
	if !g.forward && (!g.attach || os.Geteuid() != 0) { // what is a request is no matter of where the daemon is
		t.Run("framing", func(t *testing.T) { checkFraming(t, byOne{g}) })
	}
	t.Run("rebinding", func(t *testing.T) { checkRebinding(t, g) })
	t.Run("log", func(t *testing.T) { checkLogInjection(t, g) })
}

// forwardRows says what changes when DNS answers with real addresses: many
// names may share one, so a captured connection is judged by the name that the
// client itself says, in a TLS hello at port 443 or a Host at port 80. Where it
// says none, there is but the address, which the rows' policies do not allow.
func forwardRows(rows []row) []row {
	var all []row
	for _, r := range rows {
		_, err := netip.ParseAddr(r.host)
		if err == nil || !strings.Contains(r.through(), "d") || r.saysName() {
			all = append(all, r)
			continue
		}
		if r.saysAllowed() {
			r.doors = strings.ReplaceAll(r.through(), "d", "")
			all = append(all, r)
			continue
		}
		direct := row{name: r.name + ", judged by its address", host: r.host, port: r.port, say: r.say, want: deny, doors: "d", asks: true}
		if r.doors = strings.ReplaceAll(r.through(), "d", ""); r.doors != "" {
			all = append(all, r)
		}
		all = append(all, direct)
	}
	return all
}

// saysAllowed reports whether the client tells another name than it asked for,
// which is allowed, too: the gate takes it there.
func (r row) saysAllowed() bool {
	at := r.port == 443 && r.say.Kind == "tls" || r.port == 80 && r.say.Kind == "http"
	return at && slices.Contains([]string{"a.wild.example.com", "11.77.0.1"}, r.say.SNI+r.say.Host)
}

// saysName reports whether the captured client of r tells its name.
func (r row) saysName() bool {
	switch r.say.Kind {
	case "tls", "https":
		return r.port == 443 && strings.EqualFold(r.say.SNI, strings.TrimSuffix(r.host, "."))
	case "hello":
		return r.port == 443 && len(r.say.Hello.Names) == 1 && r.say.Hello.NameType == 0 && strings.EqualFold(r.say.Hello.Names[0], r.host)
	case "http":
		return r.port == 80 && strings.EqualFold(strings.TrimSuffix(r.say.Host, ":80"), r.host)
	}
	return false
}
