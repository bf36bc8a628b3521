//go:build linux

package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// healthcheck runs egressd healthcheck and reports its exit code and words.
func healthcheck(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	cmd := exec.Command("egressd", append([]string{"healthcheck"}, args...)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// The health check follows the daemon: well, draining, gone.
func TestHealthcheck(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "admin.sock")
	p := start(t, "--allow", "a.example", "--listen", "127.0.0.1:0", "--admin", addr)
	if code, text := healthcheck(t, "--admin", addr); code != 0 || text != "ready\n" {
		t.Errorf("a daemon that is ready: %d %q", code, text)
	}
	p.kill()
	if code, text := healthcheck(t, "--admin", addr); code != 1 || !strings.Contains(text, "is egressd running") || strings.Count(text, "\n") != 1 {
		t.Errorf("a daemon that is gone: %d %q", code, text)
	}
}

// A daemon that cannot record is not ready, says why, and answers 503 instead of 200.
func TestNothingCanBeRecorded(t *testing.T) {
	addr := "unix:" + filepath.Join(t.TempDir(), "admin.sock")
	p := start(t, "--allow", "a.example", "--listen", "127.0.0.1:0", "--admin", addr, "--events", "/dev/full")
	code, text := healthcheck(t, "--admin", addr)
	if code != 1 || !strings.Contains(text, "not ready: events cannot be recorded, so everything is denied") || !strings.Contains(text, "no space left on device") {
		t.Errorf("%d %q", code, text)
	}
	for range 20 {
		c := must(dial("tcp", p.addr("proxy")))(t)
		_, _ = io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
		answer := must(io.ReadAll(c))(t)
		c.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || !strings.Contains(string(answer), "cannot write its record") {
			t.Fatalf("%q", answer)
		}
	}
	p.kill()
	if n := strings.Count(p.log.String(), "level=ERROR"); n > 3 { // the outage, the daemon's start and its end
		t.Errorf("%d errors in the log:\n%s", n, p.log.String())
	}
}
