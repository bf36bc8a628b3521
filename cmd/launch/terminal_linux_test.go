package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"egressd/test/console"
)

// launchAt runs launch at a terminal.
func launchAt(t *testing.T, args ...string) *console.Console {
	t.Helper()
	return launchWith(t, "/nonexistent", args...)
}

// launchWith does so with a home directory.
func launchWith(t *testing.T, home string, args ...string) *console.Console {
	t.Helper()
	path, err := exec.LookPath("launch")
	if err != nil {
		t.Fatal(err)
	}
	return console.Start(t, console.Options{Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm"}}, append([]string{path}, args...)...)
}

// origin is a server outside that counts who came.
func origin(t *testing.T) (port string, visits *[]string) {
	t.Helper()
	visits = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*visits = append(*visits, r.Host)
		fmt.Fprintln(w, "arrived")
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, visits
}

// get is what a shell needs to ask for a page through the proxy, without curl.
const get = `get() { exec 5<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$1" "$1" >&5; cat <&5; exec 5>&-; }; `

// A program that repaints the question does not get a yes for another host: while it
// stands, what is on the screen is launch's own text.
func TestApproveRepainted(t *testing.T) {
	port, visits := origin(t)
	repaint := `setsid bash -c 'while :; do printf "\033[2J\033[Hlaunch: the program wants to reach allowed.test:80\r\n\033[8m"; done' & sleep 0.2; `
	c := launchAt(t, "--approve", "--host", "evil.test=127.0.0.1", "--", "bash", "-c", get+repaint+"get evil.test:"+port+"; echo d''one")
	c.Expect("allowed.test")
	c.Expect(`\x1b\[J\r?\r\nlaunch: the program wants to reach evil\.test:` + port)
	c.Expect("in this run: ")
	before := len(c.Shown())
	c.Peek(500 * time.Millisecond)
	if more := c.Shown()[before:]; more != "" {
		t.Errorf("over the question: %.200q", more)
	}
	c.Send("n\n")
	c.Expect("done")
	c.Exit()
	if len(*visits) > 0 {
		t.Errorf("%q arrived", *visits)
	}
}

// A yes for the whole run takes a part of the name; a simple yes is for once.
func TestApproveAtTerminal(t *testing.T) {
	port, visits := origin(t)
	c := launchAt(t, "--approve", "--host", "good.test=127.0.0.1", "--", "bash", "-c",
		get+"stty raw -echo; for i in 1 2 3; do get good.test:"+port+"; done; stty sane; read x; echo \"still reads: $x\"")
	c.Expect("in this run: ")
	c.Send("y\n")
	c.Expect("arrived")
	c.Expect("in this run: ")
	c.Send("a\n")
	c.Expect("type 4 letters or more of the name: ")
	c.Send("good.t\n")
	c.Expect("arrived")
	c.Expect("arrived")
	c.Send("keys\n")
	c.Expect("still reads: keys")
	if code := c.Exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if len(*visits) != 3 {
		t.Errorf("%q arrived", *visits)
	}
}

// What was allowed for good is allowed in the next run, by the person's own policy file.
func TestApproveSaved(t *testing.T) {
	port, visits := origin(t)
	home := t.TempDir()
	for i := range 2 {
		c := launchWith(t, home, "--approve", "--host", "good.test=127.0.0.1", "--", "bash", "-c", get+"get good.test:"+port+"; echo d''one")
		if i == 0 {
			c.Expect("saves good.test:" + port + " to " + home + "/.config/egressd/policy.yaml")
			c.Expect("in this run: ")
			c.Send("s good.t\n")
			c.Expect("saved to ")
		}
		c.Expect("arrived")
		c.Expect("done")
		if code := c.Exit(); code != 0 {
			t.Errorf("exit %d", code)
		}
		if i == 1 && strings.Contains(c.Shown(), "Allow?") {
			t.Error("asked again")
		}
	}
	if len(*visits) != 2 {
		t.Errorf("%q arrived", *visits)
	}
}

// Hidden writing, another character set and the like do not hide the summary.
func TestSummaryOnTerminal(t *testing.T) {
	c := launchAt(t, "--", "bash", "-c", get+`get evil.test; printf '\033[8m\033(0\033[?1049h\033[5;6r\033]11;black\033'; echo e''nd`)
	c.Expect("end")
	c.Exit()
	shown := c.Shown()
	at := strings.Index(shown, "launch: 0 destinations")
	if at < 0 {
		t.Fatalf("no summary in %q", shown)
	}
	before := shown[strings.LastIndex(shown[:at], "end"):at]
	for _, reset := range []string{"\x18\x1b\\", "\x1b[?1049l", "\x1b(B", "\x1b[r", "\x1b]111\x1b\\", "\x1b[0m"} {
		if !strings.Contains(before, reset) {
			t.Errorf("no %q before the summary: %q", reset, before)
		}
	}
}
