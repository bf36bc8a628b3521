package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/test/e2e/job"
)

// client is a program that nobody taught about the gate. {host} is put in;
// {ca} is the file with the world's authority.
type client struct {
	name string
	argv []string
}

var clients = []client{
	{"curl, https", []string{"curl", "-sS", "-m", "8", "--cacert", "{ca}", "https://{host}/"}},
	{"curl, http", []string{"curl", "-sS", "-m", "8", "http://{host}/"}},
	{"curl, without proxy variables", []string{"curl", "-sS", "-m", "8", "--noproxy", "*", "--cacert", "{ca}", "https://{host}/"}},
	{"curl, http, without proxy variables", []string{"curl", "-sS", "-m", "8", "--noproxy", "*", "http://{host}/"}},
	{"curl, by IPv4 only", []string{"curl", "-sS", "-m", "8", "-4", "--noproxy", "*", "--cacert", "{ca}", "https://{host}/"}},
	{"curl, POST with a body", []string{"curl", "-sS", "-m", "8", "--cacert", "{ca}", "-d", "{host}", "https://{host}/"}},
	{"curl, socks5h", []string{"curl", "-sS", "-m", "8", "--socks5-hostname", "127.0.0.1:3128", "--cacert", "{ca}", "https://{host}/"}},
	{"wget, http", []string{"wget", "-q", "-T", "8", "-t", "1", "-O", "-", "http://{host}/"}},
	{"wget, https", []string{"wget", "-q", "-T", "8", "-t", "1", "--ca-certificate={ca}", "-O", "-", "https://{host}/"}},
	{"wget, without proxy variables", []string{"wget", "-q", "-T", "8", "-t", "1", "--no-proxy", "--ca-certificate={ca}", "-O", "-", "https://{host}/"}},
	{"python urllib", []string{"python3", "-c", "import ssl,urllib.request as u;print(u.urlopen('https://{host}/',timeout=8,context=ssl.create_default_context(cafile='{ca}')).read())"}},
	{"python sockets", []string{"python3", "-c", "import ssl,socket;c=ssl.create_default_context(cafile='{ca}');s=c.wrap_socket(socket.create_connection(('{host}',443),8),server_hostname='{host}');s.sendall(b'GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n');print(s.recv(999),s.recv(999))"}},
	{"node fetch", []string{"env", "NODE_EXTRA_CA_CERTS={ca}", "node", "-e", "fetch('https://{host}/').then(r=>r.text()).then(console.log)"}},
	{"node https", []string{"env", "NODE_EXTRA_CA_CERTS={ca}", "node", "-e", "require('https').get('https://{host}/',r=>r.on('data',d=>console.log(String(d))))"}},
	{"openssl s_client", []string{"sh", "-c", "printf 'GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -CAfile {ca} -servername {host} -connect {host}:443 2>/dev/null"}},
}

// TestClients runs each towards a name that is allowed and one that is not.
func TestClients(t *testing.T) {
	needWorld(t)
	asEach(t, func(t *testing.T, who person) {
		for _, c := range clients {
			program := c.argv[0]
			if program == "env" {
				program = c.argv[2]
			}
			if program == "sh" {
				program = "openssl"
			}
			path, err := exec.LookPath(program)
			if err != nil {
				t.Logf("skipped: %s: %s is not installed", c.name, program)
				continue
			}
			if info, err := os.Stat(path); err != nil || info.Mode()&0o001 == 0 || strings.HasPrefix(path, "/root/") && who.uid != 0 {
				t.Logf("skipped: %s: %s may not be run by %s", c.name, path, who.name)
				continue
			}
			c.check(t, who, exact, true)
			c.check(t, who, "unlisted.example.com", false)
		}
	})
}

func (c client) check(t *testing.T, who person, host string, reach bool) {
	t.Helper()
	var argv []string
	for _, a := range c.argv {
		argv = append(argv, strings.NewReplacer("{host}", host, "{ca}", env.world.origins.caFile).Replace(a))
	}
	before := env.world.watch()
	e := session{who: who, flags: names, argv: argv}.run(t)
	seen := before.end(t)
	if got := strings.Contains(e.stdout, job.Marker); got != reach {
		t.Errorf("%s to %s: reached is %v, want %v (exit code %d)\nstdout: %.300s\nstderr: %.500s", c.name, host, got, reach, e.code, e.stdout, e.stderr)
	}
	if !reach {
		for _, q := range seen.questions {
			t.Errorf("%s to %s: the question %s left the machine", c.name, host, q)
		}
		for _, p := range seen.packets {
			t.Errorf("%s to %s: a packet left the sandbox: %s", c.name, host, p)
		}
		if e.blocked(func(ev map[string]any) bool { return ev["host"] == host }) == 0 {
			t.Errorf("%s to %s: no event says that it was blocked", c.name, host)
		}
	}
}

// TestNoLeak opens thousands of flows through all doors and compares the
// launcher's descriptors with those of a launcher that has seen none. The gate
// keeps connections to origins for the next request: at most as many as there
// were requests at one time, and the probe makes eight.
func TestNoLeak(t *testing.T) {
	needWorld(t)
	const flows, kept, slack = 2000, 8, 8
	who := people()[0]
	home := who.home(t)
	jobs := make([]job.Job, 0, flows)
	for i := range flows {
		j := job.Job{ID: fmt.Sprint(i), Host: exact, Port: 443, Payload: tlsFor(exact)}
		j.Op = []string{"door.connect", "door.socks5", "door.direct"}[i%3]
		switch i % 4 {
		case 1:
			j.Payload = tlsFor("evil.example.org")
		case 2:
			j.Host = "unlisted.example.com"
		case 3:
			j.Op, j.Port, j.Payload = "door.http", 80, httpFor(exact)
		}
		jobs = append(jobs, j)
	}
	data, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(home, "jobs.json")
	if err := os.WriteFile(list, data, 0o644); err != nil {
		t.Fatal(err)
	}
	quiet := settledDescriptors(t, who, "idle", "true")
	busy := settledDescriptors(t, who, "busy", env.probe+" run <"+list+" >/dev/null")
	if busy > quiet+kept+slack {
		t.Errorf("after %d flows the launcher holds %d descriptors, one without any %d", flows, busy, quiet)
	}
	t.Logf("descriptors: %d idle, %d after %d flows", quiet, busy, flows)
}

// settledDescriptors runs script under launch, waits until it is over and the
// lingering program runs, and reports the smallest number of descriptors seen
// in the second after that.
func settledDescriptors(t *testing.T, who person, name, script string) int {
	t.Helper()
	mark := token(name, 1)
	s := session{who: who, flags: names, argv: []string{"sh", "-c", script + "; exec " + env.probe + " linger " + mark + " ''"}}
	p := start(t, who, s.command(filepath.Join(who.home(t), "events.jsonl")))
	p.waitLong(t, mark, time.Minute)
	least := 1 << 30
	end := time.NewTimer(time.Second)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		least = min(least, len(fds))
		select {
		case <-end.C:
			p.kill(t)
			return least
		case <-tick.C:
		}
	}
}
