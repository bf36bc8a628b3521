//go:build linux

package main

import (
	"bufio"
	"io"
	"net"
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

// shell runs egressd from a shell script, with args as its arguments.
func shell(t *testing.T, script string, args ...string) *process {
	t.Helper()
	return launch(t, exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...))
}

// A daemon that is out of descriptors refuses, lives, and goes on when there are
// some again; a policy that cannot be read meanwhile changes nothing.
func TestOutOfDescriptors(t *testing.T) {
	port := echo(t)
	path := write(t, "policy.yaml", policyFor("app.test", port))
	p := shell(t, `ulimit -n 200; exec egressd "$@"`, "--policy", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	p.wait("msg=ready")
	p.wait("level=WARN", "file descriptors", "limits.connections")
	door := p.addr("proxy")
	long := must(connect(door, "app.test:"+port, ""))(t)
	defer long.Close()
	var held []net.Conn
	for range 300 {
		c, err := dial("tcp", door)
		if err != nil {
			break
		}
		held = append(held, c)
		_, _ = io.WriteString(c, "CONNECT app.test:"+port+" HTTP/1.1\r\nHost: app.test:"+port+"\r\n\r\n")
	}
	check(t, long.ping())
	p.signal(syscall.SIGHUP)
	check(t, long.ping())
	for _, c := range held {
		c.Close()
	}
	eventually(t, "it serves again", func() bool { return once(door, "app.test:"+port) == nil })
	check(t, long.ping())
	p.signal(syscall.SIGTERM)
	long.Close()
	if code := p.exit(patience); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// With a full disk nothing passes that could not be recorded; the daemon lives,
// says so, and goes on as soon as there is room.
func TestFullDisk(t *testing.T) {
	if !asRoot(t) {
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	port := echo(t)
	p := start(t, "--allow", "app.test:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0", "--events", dir+"/events.jsonl", "--admin", "127.0.0.1:0")
	door := p.addr("proxy")
	long := must(connect(door, "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	filler := must(os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY, 0o600))(t)
	for chunk := make([]byte, 4096); ; {
		if _, err := filler.Write(chunk); err != nil {
			break
		}
	}
	check(t, filler.Close())
	eventually(t, "the disk is full", func() bool { return once(door, "app.test:"+port) != nil })
	for range 5 {
		if once(door, "app.test:"+port) == nil { // told at the first byte
			t.Error("a flow passed that was not recorded")
		}
	}
	check(t, long.ping())
	if code, body := get(t, p.addr("admin"), "/metrics"); code != 200 || !strings.Contains(body, "egressd_") {
		t.Errorf("/metrics: %d", code)
	}
	check(t, os.Remove(filepath.Join(dir, "filler")))
	eventually(t, "it serves again", func() bool { return once(door, "app.test:"+port) == nil })
	long.Close()
	p.signal(syscall.SIGTERM)
	p.exit(patience)
	f := must(os.Open(dir + "/events.jsonl"))(t)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text := lines.Text(); !strings.HasPrefix(text, `{"time":`) || !strings.HasSuffix(text, "}") {
			t.Fatalf("half a line: %q", text)
		}
	}
}

// Log rotation: the file is moved away, SIGHUP opens a new one, no line is lost.
func TestEventsRotate(t *testing.T) {
	port := echo(t)
	events := filepath.Join(t.TempDir(), "events.jsonl")
	p := start(t, "--allow", "app.test:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0", "--events", events)
	l := startLoad(t, p.addr("proxy"), "app.test:"+port)
	check(t, os.Rename(events, events+".1"))
	p.signal(syscall.SIGHUP)
	eventually(t, "a new file", func() bool { info, err := os.Stat(events); return err == nil && info.Size() > 0 })
	l.end()
	p.signal(syscall.SIGTERM)
	p.exit(patience)
	if l.failures.Load() > 0 {
		t.Errorf("%d requests failed: %v", l.failures.Load(), l.first.Load())
	}
	all := string(must(os.ReadFile(events+".1"))(t)) + string(must(os.ReadFile(events))(t))
	want := 1
	for line := range strings.Lines(all) {
		if !strings.Contains(line, `"seq":`+strconv.Itoa(want)+",") {
			t.Fatalf("line %d is %s", want, line)
		}
		want++
	}
	if want < 10 {
		t.Errorf("only %d lines", want-1)
	}
}

// A reader of the events that went away denies, and does not end the daemon.
func TestEventsReaderGone(t *testing.T) {
	port := echo(t)
	r, w, err := os.Pipe()
	check(t, err)
	cmd := exec.Command("egressd", "--allow", "app.test:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0")
	p := launchWith(t, cmd, w)
	w.Close()
	p.wait("msg=ready")
	door := p.addr("proxy")
	check(t, once(door, "app.test:"+port))
	r.Close()
	for range 3 {
		if once(door, "app.test:"+port) == nil {
			t.Error("a flow passed that was not recorded")
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(patience); code != cli.ExitNo {
		t.Errorf("exit code %d: the record is not whole, and nobody hears of it", code)
	}
}

// A dead DNS server: its names fail in time with their reason, others work.
func TestDeadDNS(t *testing.T) {
	port := echo(t)
	dead := must(net.ListenPacket("udp", "127.0.0.1:0"))(t) // takes questions and never answers
	defer dead.Close()
	p := start(t, "--allow", "app.test:"+port+",slow.example:"+port, "--host", "app.test=127.0.0.1", "--listen", "127.0.0.1:0",
		"--dns-upstream", dead.LocalAddr().String())
	door := p.addr("proxy")
	done := make(chan error, 1)
	begin := time.Now()
	go func() { done <- once(door, "slow.example:"+port) }()
	for range 10 {
		check(t, once(door, "app.test:"+port))
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "50") {
		t.Errorf("the name that nobody resolves: %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	p.events.wait(t, `"reason":"dns_timeout"`)
}
