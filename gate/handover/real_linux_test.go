package handover

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/event/eventtest"
)

const realCeiling = `
allow: ["a.test:ORIGIN", "b.test:ORIGIN", "moved.test:ORIGIN", "raw:host.internal:ORIGIN"]
hosts: {a.test: 127.0.0.1, b.test: 127.0.0.1, host.internal: 127.0.0.1}
`

// A program under launch --egressd reaches what both policies allow, captured
// and through the proxy, and the launcher's record is whole.
func TestRealSession(t *testing.T) {
	r := startReal(t, realCeiling)
	l := r.launch([]string{"--allow", "a.test:ORIGIN,over.test:ORIGIN", "--host", "a.test=127.0.0.1", "--host", "over.test=127.0.0.1", "--events", "events.jsonl", "--learn", "learned.yaml"},
		"get:http://a.test:ORIGIN/", "proxied:http://a.test:ORIGIN/", "get:http://b.test:ORIGIN/", "proxied:http://b.test:ORIGIN/", "get:http://over.test:ORIGIN/", "proxied:http://over.test:ORIGIN/")
	if code := l.end(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for word, want := range map[string]string{
		"get:http://a.test:ORIGIN/":        "200 outside",
		"proxied:http://a.test:ORIGIN/":    "200 outside",
		"get:http://b.test:ORIGIN/":        "no such host",
		"proxied:http://b.test:ORIGIN/":    "host_not_listed",
		"get:http://over.test:ORIGIN/":     "no such host",
		"proxied:http://over.test:ORIGIN/": "outside_ceiling",
	} {
		if got := l.said(word); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
	if got := l.said("proxied:http://over.test:ORIGIN/"); !strings.Contains(got, "operator") || strings.Contains(got, "--allow") {
		t.Errorf("the refusal says %q", got)
	}
	if s := l.err.String(); !strings.Contains(s, "allowed  a.test") || !strings.Contains(s, "its operator must change the ceiling policy") {
		t.Errorf("summary: %s", s)
	}
	if data, err := os.ReadFile(filepath.Join(l.dir, "learned.yaml")); err != nil || !strings.Contains(string(data), "a.test:") {
		t.Errorf("learned %q, %v", data, err)
	}
	theirs, ours := readEvents(t, filepath.Join(r.dir, "events.jsonl")), readEvents(t, filepath.Join(l.dir, "events.jsonl"))
	session := ours[0].Session
	a, b := network(ours, session), network(theirs, session)
	if !slices.Equal(a, b) || len(a) < 8 {
		t.Errorf("launch recorded\n%s\negressd\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	for _, e := range theirs {
		if e.Type == "session.opened" && (e.ArgvHash != ours[0].ArgvHash || !strings.HasPrefix(e.Client, fmt.Sprintf("uid=%d ", realUser()))) {
			t.Errorf("%+v, want the hash %s", e, ours[0].ArgvHash)
		}
	}
	if last := ours[len(ours)-1]; last.Type != "run.completed" || ours[0].Type != "command.executed" {
		t.Errorf("it begins with %s and ends with %s", ours[0].Type, last.Type)
	}
}

func realUser() int {
	if isRoot() {
		return launcherUser
	}
	return os.Geteuid()
}

// Every way to ask for more, on the command line.
func TestRealOnlyNarrows(t *testing.T) {
	r := startReal(t, realCeiling)
	blocked := []string{"proxied:http://other.test:ORIGIN/", "get:http://other.test:ORIGIN/", "get:http://127.0.0.2:ORIGIN/", "proxied:http://moved.test:ORIGIN/"}
	for name, flags := range map[string][]string{
		"hosts":     {"--allow", "other.test:ORIGIN,moved.test:ORIGIN", "--host", "other.test=127.0.0.1", "--host", "moved.test=127.0.0.1"},
		"wildcards": {"--allow", ".test:*", "--host", "other.test=127.0.0.1", "--host", "moved.test=127.0.0.1"},
		"raw":       {"--allow", "raw:.test:1-65535", "--host", "other.test=127.0.0.1", "--host", "moved.test=127.0.0.1"},
		"ranges":    {"--allow", ".test:*,127.0.0.0/8:*,0.0.0.0/0:*", "--host", "other.test=127.0.0.1", "--host", "moved.test=127.0.0.1"},
		"paths":     {"--allow", "GET https://other.test/**", "--allow", "other.test:*,moved.test:*", "--host", "other.test=127.0.0.1", "--host", "moved.test=127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := r.launch(append(flags, "--quiet"), blocked...)
			if code := l.end(); code != 0 {
				t.Fatalf("exit code %d: %s", code, l.err)
			}
			for _, word := range blocked {
				if got := l.said(word); strings.Contains(got, "outside") && !strings.Contains(got, "outside_ceiling") {
					t.Errorf("%s: %s", word, got)
				}
			}
		})
	}
	for name, tt := range map[string]struct {
		flags []string
		want  string
	}{
		"audit":      {[]string{"--audit"}, "--audit"},
		"host port":  {[]string{"--host-port", "1"}, "--host-port 1"},
		"dns server": {[]string{"--dns-upstream", "192.0.2.1"}, "--dns-upstream"},
		"advisory":   {[]string{"--isolation", "env"}, "--egressd"},
	} {
		t.Run(name, func(t *testing.T) {
			l := r.launch(tt.flags, "env:HOME")
			if code := l.end(); code != 125 || !strings.Contains(l.err.String(), tt.want) || l.out.String() != "" {
				t.Errorf("exit code %d: %s%s", code, l.out, l.err)
			}
		})
	}
}

// A session has the secrets of its own user, and none of the daemon's.
func TestRealSecrets(t *testing.T) {
	r := startReal(t, realCeiling+"\nlimits: {connections: 100}\n")
	path := filepath.Join(place(t, launcherUser, 0o755), "p.yaml")
	text := r.text("allow: ['a.test:ORIGIN', a.test]\nhosts: {a.test: 127.0.0.1}\nsecrets:\n  - {env: %s, header: Authorization, hosts: [a.test]}\n")
	for env, code := range map[string]int{"SESSION_SECRET": 0, "DAEMON_SECRET": 125} {
		if err := os.WriteFile(path, fmt.Appendf(nil, text, env), 0o644); err != nil {
			t.Fatal(err)
		}
		l := r.launch([]string{"--policy", path}, "env:"+env, "cat:$SSL_CERT_FILE", "get:http://a.test:ORIGIN/")
		if got := l.end(); got != code {
			t.Fatalf("%s: exit code %d: %s", env, got, l.err)
		}
		if code != 0 {
			continue
		}
		if got := l.said("env:" + env); strings.Contains(got, "of-the") || got == "" {
			t.Errorf("inside, %s is %q", env, got)
		}
		if got := l.said("cat:$SSL_CERT_FILE"); got != "true <nil>" {
			t.Errorf("the CA inside: %s", got)
		}
		if got := l.said("get:http://a.test:ORIGIN/"); got != "200 outside" {
			t.Error(got)
		}
	}
}

// Ports of the host are dialled by the daemon, published ports by launch.
func TestRealPorts(t *testing.T) {
	r := startReal(t, realCeiling)
	free := freePort(t)
	l := r.launch([]string{"--host-port", "localhost:ORIGIN", "--publish", fmt.Sprint(free)},
		"proxied:http://host.internal:ORIGIN/", "get:http://host.internal:ORIGIN/", "get:http://localhost:ORIGIN/", fmt.Sprintf("serve:%d", free), "until:stop")
	l.out.waitFor(t, "ready")
	if got := fetch(&http.Client{Timeout: patience}, fmt.Sprintf("http://127.0.0.1:%d/", free)); got != "200 inside" {
		t.Errorf("published: %s", got)
	}
	l.tell("stop")
	if code := l.end(); code != 0 {
		t.Fatalf("exit code %d: %s", code, l.err)
	}
	for _, word := range []string{"proxied:http://host.internal:ORIGIN/", "get:http://host.internal:ORIGIN/", "get:http://localhost:ORIGIN/"} {
		if got := l.said(word); got != "200 outside" {
			t.Errorf("%s: %s", word, got)
		}
	}
}

// Two sandboxes of one daemon do not see each other's names.
func TestRealNeighbours(t *testing.T) {
	r := startReal(t, realCeiling)
	words := []string{"get:http://a.test:ORIGIN/", "get:http://b.test:ORIGIN/", "until:go", "get:http://198.18.0.1:ORIGIN/", "get:http://198.18.0.2:ORIGIN/", "get:http://198.18.0.3:ORIGIN/"}
	a := r.launch([]string{"--allow", "a.test:ORIGIN", "--host", "a.test=127.0.0.1"}, words...)
	b := r.launch([]string{"--allow", "b.test:ORIGIN", "--host", "b.test=127.0.0.1"}, words...)
	for _, l := range []*run{a, b} {
		l.out.waitFor(t, "waiting go")
	}
	for _, l := range []*run{a, b} {
		l.tell("go")
		if code := l.end(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
	for _, tt := range []struct {
		l             *run
		mine, another string
	}{{a, "a.test", "b.test"}, {b, "b.test", "a.test"}} {
		if got := tt.l.said("get:http://" + tt.mine + ":ORIGIN/"); got != "200 outside" {
			t.Errorf("%s: %s", tt.mine, got)
		}
		if got := tt.l.said("get:http://" + tt.another + ":ORIGIN/"); !strings.Contains(got, "no such host") {
			t.Errorf("%s: %s", tt.another, got)
		}
	}
	all := readEvents(t, filepath.Join(r.dir, "events.jsonl"))
	for _, e := range all {
		if e.Decision != "allowed" {
			continue
		}
		if owner := sessionThatAsked(all, e.Host); owner != e.Session {
			t.Errorf("session %s reached %s of session %s", e.Session, e.Host, owner)
		}
	}
}

// sessionThatAsked reports the session of the first allowed question for host.
func sessionThatAsked(all []eventtest.Line, host string) string {
	for _, e := range all {
		if e.Type == "dns.query" && e.Decision == "allowed" && e.Host == host {
			return e.Session
		}
	}
	return ""
}

// kill -9 of the daemon: launch says so, the program goes on without a way out.
func TestRealDaemonKilled(t *testing.T) {
	r := startReal(t, realCeiling)
	l := r.launch([]string{"--allow", "a.test:ORIGIN", "--host", "a.test=127.0.0.1", "--quiet"},
		"get:http://a.test:ORIGIN/", "until:go", "proxied:http://a.test:ORIGIN/", "get:http://198.18.0.1:ORIGIN/", "get:http://a.test:ORIGIN/?again", "get:http://127.0.0.1:ORIGIN/", "env:HOME")
	l.out.waitFor(t, "waiting go")
	if err := r.daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l.err.waitFor(t, "is gone")
	l.tell("go")
	if code := l.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := l.said("get:http://a.test:ORIGIN/"); got != "200 outside" {
		t.Errorf("before: %s", got)
	}
	for _, word := range []string{"proxied:http://a.test:ORIGIN/", "get:http://198.18.0.1:ORIGIN/", "get:http://a.test:ORIGIN/?again", "get:http://127.0.0.1:ORIGIN/"} {
		if got := l.said(word); !strings.HasPrefix(got, "failed: ") {
			t.Errorf("%s: %s", word, got)
		}
	}
	if l.said("env:HOME") == "" {
		t.Error("the program did not go on")
	}
}

// kill -9 of launch, and of the program inside: the daemon forgets the session.
func TestRealLauncherKilled(t *testing.T) {
	r := startReal(t, realCeiling, "--admin", "127.0.0.1:0")
	count := func() int { return r.openDescriptors() }
	before := -1
	for i := range 3 {
		l := r.launch([]string{"--allow", "a.test:ORIGIN", "--host", "a.test=127.0.0.1"}, "get:http://a.test:ORIGIN/", "until:never")
		l.out.waitFor(t, "waiting never")
		if err := l.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.end()
		for limit := time.Now().Add(patience); strings.Count(r.log.String(), `msg="session closed"`) <= i; wait(t.Context(), 5*time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("the session stays")
			}
		}
		settled := 0
		for limit := time.Now().Add(patience); before >= 0 && time.Now().Before(limit); wait(t.Context(), 10*time.Millisecond) {
			if settled = count(); settled <= before {
				break
			}
		}
		if before < 0 {
			wait(t.Context(), 200*time.Millisecond)
			before = count() + 1 // what the first session made for all
		} else if settled > before {
			t.Errorf("%d descriptors after session %d, %d after the first", settled, i+1, before)
		}
	}
}

// Who may not connect is told so, and the socket stays the daemon's.
func TestRealStranger(t *testing.T) {
	r := startReal(t, realCeiling)
	if info, err := os.Stat(r.socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if !isRoot() {
		if err := os.Chmod(r.socket, 0); err != nil { // nobody else to be
			t.Fatal(err)
		}
	}
	l := r.launchAs(strangerUser, nil, nil, "env:HOME")
	if code := l.end(); code != 125 || !strings.Contains(l.err.String(), "egressd at") && !strings.Contains(l.err.String(), "control socket") {
		t.Errorf("exit code %d: %s", code, l.err)
	}
}

// A changed ceiling holds for the runs that are under way.
func TestRealReload(t *testing.T) {
	r := startReal(t, realCeiling)
	l := r.launch([]string{"--allow", "a.test:ORIGIN,b.test:ORIGIN", "--host", "a.test=127.0.0.1", "--host", "b.test=127.0.0.1"},
		"proxied:http://a.test:ORIGIN/", "until:go", "proxied:http://a.test:ORIGIN/?2", "proxied:http://b.test:ORIGIN/")
	l.out.waitFor(t, "waiting go")
	r.write("policy.yaml", "allow: ['b.test:ORIGIN']\nhosts: {b.test: 127.0.0.1}\n")
	if err := r.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.log.waitFor(t, "a.test:")
	for limit := time.Now().Add(patience); strings.Count(r.file("events.jsonl"), "policy.loaded") < 2; wait(t.Context(), 5*time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("nothing was reloaded")
		}
	}
	l.tell("go")
	if code := l.end(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if got := l.said("proxied:http://a.test:ORIGIN/"); got != "200 outside" {
		t.Errorf("before: %s", got)
	}
	if got := l.said("proxied:http://a.test:ORIGIN/?2"); !strings.Contains(got, "outside_ceiling") {
		t.Errorf("after: %s", got)
	}
	if got := l.said("proxied:http://b.test:ORIGIN/"); got != "200 outside" {
		t.Errorf("still allowed: %s", got)
	}
}
