//go:build linux && system

package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"egressd/sandbox/hermetic"
)

// traced runs launch --tier hermetic under strace and reports the system calls
// of its worker, a line each, from its start on.
func traced(t *testing.T, args ...string) []string {
	t.Helper()
	if err := hermetic.Walls(); err != nil {
		t.Skip(err)
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), strace, append([]string{"-f", "-qq", "-o", file, "-e", "trace=%process,%network,memfd_create", "-e", "signal=none", "launch", "--tier", "hermetic"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + lookInTests(t) + ":/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace: %v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	worker := ""
	threads := map[string]bool{}
	var calls []string
	for line := range strings.Lines(string(text)) {
		pid, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if strings.Contains(call, "execve(") && strings.Contains(call, `["launch-hermetic"]`) {
			worker = pid
			threads[pid] = true
			continue
		}
		if m := regexp.MustCompile(`clone.*CLONE_THREAD.* = (\d+)$|<\.\.\. clone3? resumed.* = (\d+)$`).FindStringSubmatch(call); m != nil && threads[pid] {
			threads[m[1]+m[2]] = true
		}
		if worker != "" && !threads[pid] && strings.HasPrefix(call, "kill("+worker+", SIGKILL") {
			// The launcher ends it. A thread that dies on its way into a call has no
			// registers to read: strace then shows the call that it read last, this one.
			break
		}
		if worker != "" && threads[pid] {
			calls = append(calls, call)
		}
	}
	if worker == "" {
		t.Fatalf("no worker in the trace:\n%s", text)
	}
	return calls
}

// lookInTests is a directory in which this test binary is called launch.
func lookInTests(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "launch")); err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	makes  = regexp.MustCompile(`^(socket|socketpair|connect|bind|listen|accept4?|execve|execveat|fork|vfork|memfd_create|kill|tkill|pidfd_\w+)\(`)
	clones = regexp.MustCompile(`^clone3?\(`)
)

// A worker makes no process and no socket, whatever its script does: commands,
// pipelines, jobs, substitutions, a fetch.
func TestTraced(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fetched\n")) }))
	defer origin.Close()
	u, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	calls := traced(t, "--host", "ok.test=127.0.0.1", "--allow", "ok.test:"+u.Port(), "--", "sh", "-c", `
set -e
seq 100 | sort -r | head -n 3 >out
(cd /tmp; echo x >y; cat y) & wait
for f in $(ls); do test -e "$f"; done
cat <(echo a) <<<b
sh -c 'echo nested'
curl -s http://ok.test:`+u.Port()+`/ >fetched
test "$(cat fetched)" = fetched
! nmap localhost
`)
	if len(calls) == 0 {
		t.Fatal("nothing was traced")
	}
	for _, call := range calls {
		if makes.MatchString(call) || clones.MatchString(call) && !strings.Contains(call, "CLONE_THREAD") && !strings.Contains(call, "ENOSYS") {
			t.Errorf("the worker: %s", call)
		}
	}
}
