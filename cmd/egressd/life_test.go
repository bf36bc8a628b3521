//go:build linux

package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/internal/cli"
)

// On SIGTERM nothing new is taken, /readyz says so, what is open finishes, and
// every event is there.
func TestDrain(t *testing.T) {
	port := echo(t)
	p := start(t, "--allow", "app.test:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	proxy, admin := p.addr("proxy"), p.addr("admin")
	long := must(connect(proxy, "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	p.signal(syscall.SIGTERM)
	p.wait("draining: no new")
	eventually(t, "connections are refused", func() bool {
		return errors.Is(once(proxy, "app.test:"+port), syscall.ECONNREFUSED)
	})
	if code, body := get(t, admin, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "drain") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := get(t, admin, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	check(t, long.ping())
	long.Close()
	if code := p.exit(10 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	opened, closed := p.events.count(`"type":"network.connected"`, `"decision":"allowed"`), p.events.count(`"type":"network.closed"`)
	if opened != closed || closed == 0 || p.events.count(`"type":"daemon.stopped"`) != 1 {
		t.Errorf("the events are not whole: %d flows opened, %d closed", opened, closed)
	}
}

func TestDrainDeadline(t *testing.T) {
	port := echo(t)
	p := start(t, "--allow", "app.test:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0", "--drain", "300ms")
	long := must(connect(p.addr("proxy"), "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	p.signal(syscall.SIGTERM)
	if _, closed := long.closedWithin(patience); !closed {
		t.Error("the tunnel lives on")
	}
	if code := p.exit(5 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if p.events.count(`"type":"network.closed"`) != 1 {
		t.Error("no event for the end of the tunnel")
	}
}

func TestSecondSignalClosesNow(t *testing.T) {
	port := echo(t)
	p := start(t, "--allow", "app.test:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0", "--drain", "10m")
	long := must(connect(p.addr("proxy"), "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	p.signal(syscall.SIGTERM)
	p.wait("draining: no new")
	check(t, long.ping())
	p.signal(syscall.SIGINT)
	if code := p.exit(5 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if _, closed := long.closedWithin(patience); !closed {
		t.Error("the tunnel lives on")
	}
}

// A reload in the middle of a drain neither ends it nor opens anything.
func TestReloadWhileDraining(t *testing.T) {
	port := echo(t)
	path := write(t, "policy.yaml", policyFor("app.test", port))
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0", "--drain", "10m")
	long := must(connect(p.addr("proxy"), "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	p.signal(syscall.SIGTERM)
	p.wait("draining: no new")
	ways["rename"](t, path, "# nothing is allowed any more\n")
	if _, closed := long.closedWithin(patience); !closed {
		t.Error("the tunnel that the new policy denies lives on")
	}
	if code := p.exit(5 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// A daemon that was killed leaves nothing that lets traffic pass, and nothing that
// hinders the next one.
func TestKilledAndStartedAgain(t *testing.T) {
	port := echo(t)
	dir := t.TempDir()
	ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	proxy := ln.Addr().String()
	ln.Close()
	args := []string{
		"--allow", "app.test:" + port, "--host", "app.test=127.0.0.1", "--listen", proxy,
		"--admin", "unix:" + dir + "/admin.sock", "--events", dir + "/events.jsonl",
	}
	p := start(t, args...)
	l := startLoad(t, proxy, "app.test:"+port)
	long := must(connect(proxy, "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	p.signal(syscall.SIGKILL)
	p.exit(5 * time.Second)
	if _, closed := long.closedWithin(patience); !closed {
		t.Error("a tunnel outlived the daemon")
	}
	if _, err := connect(proxy, "app.test:"+port, ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while the daemon is dead: %v", err)
	}
	p = start(t, args...)
	check(t, once(proxy, "app.test:"+port))
	c := must(dial("unix", dir+"/admin.sock"))(t)
	c.Close()
	l.end()
	p.signal(syscall.SIGTERM)
	if code := p.exit(5 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(must(os.ReadFile(dir+"/events.jsonl"))(t))), "\n") {
		if !strings.HasPrefix(line, `{"time":`) || !strings.HasSuffix(line, "}") {
			t.Fatalf("half a line: %q", line)
		}
	}
}

// Sockets that somebody else answers, and files that are no sockets, are left
// alone.
func TestSocketOfAnother(t *testing.T) {
	dir := t.TempDir()
	sock := filepath.Join(dir, "admin.sock")
	p := start(t, "--allow", "a.example", "--listen", "127.0.0.1:0", "--admin", "unix:"+sock)
	info := must(os.Stat(sock))(t)
	if info.Mode().Perm() != 0o660 {
		t.Errorf("the admin socket has mode %v", info.Mode())
	}
	out, err := exec.Command("egressd", "--allow", "a.example", "--listen", "127.0.0.1:0", "--admin", "unix:"+sock).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--admin") || !strings.Contains(string(out), "another egressd") {
		t.Errorf("%v: %s", err, out)
	}
	plain := write(t, "plain", "keep me")
	out, err = exec.Command("egressd", "--allow", "a.example", "--listen", "127.0.0.1:0", "--admin", "unix:"+plain).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not a socket") || string(must(os.ReadFile(plain))(t)) != "keep me" {
		t.Errorf("%v: %s", err, out)
	}
	p.signal(syscall.SIGTERM)
	p.exit(5 * time.Second)
	if _, err := os.Stat(sock); err == nil {
		t.Error("the socket's file is left behind")
	}
}

// Sockets from the service manager, and what it is told.
func TestSocketActivation(t *testing.T) {
	port := echo(t)
	proxyLn := must(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener)
	adminLn := must(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener)
	defer proxyLn.Close()
	defer adminLn.Close()
	notify := filepath.Join(t.TempDir(), "notify")
	pc := must(net.ListenPacket("unixgram", notify))(t)
	defer pc.Close()
	dnsLn := must(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener)
	dnsPC := must(net.ListenPacket("udp", dnsLn.Addr().String()))(t).(*net.UDPConn)
	defer dnsLn.Close()
	defer dnsPC.Close()
	other := write(t, "b.yaml", "allow:\n  - b.test\n")
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec egressd --allow "$1" --host app.test=127.0.0.1 --policy "team-b=$2"`, "sh", "app.test:"+port, other)
	cmd.Env = []string{"LISTEN_FDS=4", "LISTEN_FDNAMES=proxy:admin:dns.team-b:dns.team-b", "NOTIFY_SOCKET=" + notify, "WATCHDOG_USEC=200000"}
	cmd.ExtraFiles = []*os.File{must(proxyLn.File())(t), must(adminLn.File())(t), must(dnsLn.File())(t), must(dnsPC.File())(t)}
	p := launch(t, cmd)
	told := func(want string) {
		t.Helper()
		buf := make([]byte, 4096)
		_ = pc.SetReadDeadline(time.Now().Add(patience))
		for {
			n, _, err := pc.ReadFrom(buf)
			if err != nil {
				t.Fatalf("not told %q: %v", want, err)
			}
			if strings.Contains(string(buf[:n]), want) {
				return
			}
		}
	}
	told("READY=1")
	told("WATCHDOG=1")
	check(t, once(proxyLn.Addr().String(), "app.test:"+port))
	if code, _ := get(t, adminLn.Addr().String(), "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d", code)
	}
	for _, network := range []string{"udp", "tcp"} {
		if code, addrs := resolve(t, "", network, dnsLn.Addr().String(), "b.test"); len(addrs) != 1 {
			t.Errorf("DNS over %s: %v", network, code)
		}
	}
	p.signal(syscall.SIGHUP)
	told("RELOADING=1")
	told("READY=1")
	p.signal(syscall.SIGTERM)
	told("STOPPING=1")
	if code := p.exit(5 * time.Second); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// Other programs of the same user cannot look into the daemon: what belongs to it
// below /proc belongs to root, as its memory does.
func TestNotDumpable(t *testing.T) {
	// By descriptor, since another user may not enter the directory.
	path := must(exec.LookPath("egressd"))(t)
	self := must(os.Open(path))(t)
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3", "--allow", "a.example", "--listen", "127.0.0.1:0")
	cmd.Args[0], cmd.ExtraFiles = "egressd", []*os.File{self}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	p := launch(t, cmd)
	p.wait("msg=ready")
	var st syscall.Stat_t
	check(t, syscall.Stat("/proc/"+strconv.Itoa(cmd.Process.Pid)+"/mem", &st))
	if st.Uid != 0 {
		t.Errorf("/proc/PID/mem belongs to user %d", st.Uid)
	}
	status := string(must(os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status"))(t))
	for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			t.Errorf("not %q:\n%s", want, status)
		}
	}
	if os.Getuid() != 0 {
		if _, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/environ"); err == nil {
			t.Error("its environment can be read")
		}
	}
}
