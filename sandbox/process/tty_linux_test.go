package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/console"
)

// atTerminal runs the launcher with args at a terminal.
func atTerminal(t *testing.T, args ...string) *console.Console {
	t.Helper()
	needNamespaces(t)
	return console.Start(t, console.Options{}, append([]string{self(t), "launch"}, args...)...)
}

// atShell is an interactive shell at a terminal.
func atShell(t *testing.T) *console.Console {
	t.Helper()
	needNamespaces(t)
	c := console.Start(t, console.Options{}, "/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	c.Expect("ready> ")
	return c
}

// ask, in a launcher, does with the terminal what launch --approve does, at each
// SIGIO of this process.
func ask(b *Backend) {
	wanted := make(chan os.Signal, 1)
	signal.Notify(wanted, syscall.SIGIO)
	for range wanted {
		release, err := b.Hold(context.Background())
		if err != nil {
			fmt.Println("not held:", err)
			continue
		}
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err == nil {
			io.WriteString(tty, "the question: ")
			answer := make([]byte, 100)
			n, _ := tty.Read(answer)
			fmt.Fprintf(tty, "the answer was %q\r\n", answer[:n])
			tty.Close()
		}
		release()
	}
}

func TestTerminalInterrupt(t *testing.T) {
	c := atTerminal(t, "/bin/sh", "-c", "echo st''arted; exec sleep 60")
	c.Expect("started")
	c.Send(console.CtrlC)
	if code := c.Exit(); code != 130 {
		t.Errorf("exit %d", code)
	}
	c = atTerminal(t, "/bin/sh", "-c", `trap 'n=$((n+1))' INT; echo st''arted; sleep 1; sleep 1; echo "interrupts: $n"; exit 4`)
	c.Expect("started")
	c.Send(console.CtrlC)
	c.Expect("interrupts: 1\r") // once, not once more through the launcher
	if code := c.Exit(); code != 4 {
		t.Errorf("exit %d", code)
	}
	c = atTerminal(t, "/bin/sh", "-c", "echo st''arted; exec sleep 60")
	c.Expect("started")
	c.Send(console.CtrlBackslash)
	if code := c.Exit(); code != 131 {
		t.Errorf("exit %d", code)
	}
}

// TestTerminalJobControl stops and resumes the launcher as a job of a shell.
func TestTerminalJobControl(t *testing.T) {
	c := atShell(t)
	c.Send(self(t) + " launch /bin/sh -c 'echo st\"\"arted; read x; echo \"got $x\"; exit 7'\n")
	c.Expect("started")
	c.Send(console.CtrlZ)
	c.Expect("Stopped")
	c.Expect("ready> ")
	c.Send("echo the shell an''swers\n")
	c.Expect("the shell answers")
	c.Send("fg\n")
	c.Expect("launch /bin/sh") // the shell says what it resumes
	c.Await("raw", console.Raw)
	c.Send("hello\n")
	c.Expect("got hello")
	c.Expect("ready> ")
	c.Send("echo exit $?\n")
	c.Expect("exit 7\r")
}

// In the background the program writes, and is stopped when it reads, as any job.
func TestTerminalBackground(t *testing.T) {
	c := atShell(t)
	c.Send(self(t) + " launch /bin/sh -c 'echo wr\"\"itten; read x; echo \"got $x\"' &\n")
	c.Expect("written")
	c.Send(`until jobs -l | grep "tty in""put"; do sleep 0.1; done` + "\n")
	c.Expect(`Stopped \(tty input\)`)
	c.Send("fg\n")
	c.Expect("launch /bin/sh")
	c.Await("raw", console.Raw)
	c.Send("hello\n")
	c.Expect("got hello")
	c.Expect("ready> ")
	// Stopped in the foreground, it goes on in the background.
	c.Send(self(t) + " launch /bin/sh -c 'trap \"echo ag\"\"ain; exit\" CONT; echo st\"\"arted; while :; do :; done'\n")
	c.Expect("started")
	c.Send(console.CtrlZ)
	c.Expect("Stopped")
	c.Send("bg\n")
	c.Expect("again")
	c.Send("echo wait''ed; wait\n")
	c.Expect("waited")
	c.Expect("ready> ")
}

// A pipeline's other members read the terminal while the program does not want it.
func TestTerminalPipeline(t *testing.T) {
	c := atShell(t)
	c.Send(self(t) + " launch /bin/sh -c 'test -t 0 && test -t 2 && ! test -t 1 && echo as out\"\"side; sleep 1' | (read said; echo \"$said\"; read x </dev/tty; echo \"got $x\")\n")
	c.Expect("as outside")
	c.Send("my keys\n")
	c.Expect("got my keys")
	c.Expect("ready> ")
	c.Send("echo piped | " + self(t) + " launch /bin/sh -c 'read a; read b </dev/tty; echo \"$a and $b\"'\n")
	c.Await("raw", func(m unix.Termios) bool { return console.Raw(m) })
	c.Send("typed\n")
	c.Expect("piped and typed")
}

// TestTerminalShellInside runs an interactive shell with jobs of its own.
func TestTerminalShellInside(t *testing.T) {
	c := atTerminal(t, "/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	c.Expect("ready> ")
	// No sleep in the loop: a shell that is stopped while its child has yet to
	// execute (vfork) does not stop.
	c.Send(`sh -c 'trap "echo ag\"\"ain" CONT; echo in""side; while :; do :; done'` + "\n")
	c.Expect("inside")
	c.Send(console.CtrlZ)
	c.Expect("Stopped")
	c.Expect("ready> ")
	c.Send("fg\n")
	c.Expect("again")
	c.Send(console.CtrlC)
	c.Expect("ready> ")
	c.Send("tty; exit 6\n")
	c.Expect("/dev/pts/0")
	if code := c.Exit(); code != 6 {
		t.Errorf("exit %d", code)
	}
}

// TestTerminalInjection pushes a command into the program's terminal.
func TestTerminalInjection(t *testing.T) {
	c := atTerminal(t, self(t), "attack", "tiocsti")
	c.Expect("tiocsti stopped: operation not permitted")
	if code := c.Exit(); code != attackStopped {
		t.Errorf("exit %d", code)
	}
}

func TestTerminalSize(t *testing.T) {
	c := atTerminal(t, "/bin/bash", "-c", `stty size; trap 'stty size; exit 3' WINCH; echo st""arted; while :; do sleep 0.1; done`)
	c.Expect("24 80\r")
	c.Expect("started")
	c.Resize(40, 100)
	c.Expect("40 100\r")
	if code := c.Exit(); code != 3 {
		t.Errorf("exit %d", code)
	}
}

// What the program does to its terminal is not done to the person's, which is as it
// was after every end.
func TestTerminalRestored(t *testing.T) {
	for name, one := range map[string]struct {
		args []string
		end  func(c *console.Console)
		code int
	}{
		"its own end":  {[]string{"/bin/sh", "-c", "stty raw -echo; printf '\\033[?1049h\\033[?1000h\\033(0\\033[8m'; echo st''arted; read x; exit 5"}, func(c *console.Console) { c.Send("x\n") }, 5},
		"killed":       {[]string{"/bin/sh", "-c", "echo st''arted; read x; kill -9 $$"}, func(c *console.Console) { c.Send("x\n") }, 137},
		"terminated":   {[]string{"/bin/sh", "-c", "echo st''arted; read x"}, func(c *console.Console) { c.Cmd.Process.Signal(syscall.SIGTERM) }, 143},
		"out of time":  {[]string{"-timeout=1s", "/bin/sh", "-c", "trap '' TERM; echo st''arted; read x; sleep 60"}, func(*console.Console) {}, 124},
		"a background": {[]string{"/bin/sh", "-c", "echo st''arted; read x; (trap '' HUP TERM; sleep 60) & exit 6"}, func(c *console.Console) { c.Send("x\n") }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			needNamespaces(t)
			// A shell keeps the terminal open, so that its modes can be seen, and begins
			// when they have been.
			argv := append([]string{"-c", `read x; "$@"; code=$?; echo; echo "en""ded"; read x; exit $code`, "sh", self(t), "launch"}, one.args...)
			c := console.Start(t, console.Options{}, append([]string{"/bin/bash"}, argv...)...)
			before := c.Modes()
			c.Send("\n")
			c.Expect("started")
			c.Await("raw", console.Raw)
			if name == "terminated" {
				// The shell's child is the launcher.
				kids, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Cmd.Process.Pid))
				var pid int
				if _, err2 := fmt.Sscan(string(kids), &pid); err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				syscall.Kill(pid, syscall.SIGTERM)
			} else {
				one.end(c)
			}
			c.Expect("ended")
			if after := c.Modes(); after != before {
				t.Errorf("the terminal was changed: %+v, was %+v", after, before)
			}
			if name == "its own end" {
				for _, reset := range []string{"\x1b[?1049l", "\x1b[?1000l", "\x1b(B", "\x1b[0m"} {
					if !strings.Contains(c.Shown()[strings.LastIndex(c.Shown(), "started"):], reset) {
						t.Errorf("no %q after %q", reset, c.Shown())
					}
				}
			}
			c.Send("\n")
			if code := c.Exit(); code != one.code {
				t.Errorf("exit %d, want %d", code, one.code)
			}
		})
	}
}

// Everything arrives, both ways.
func TestTerminalBytes(t *testing.T) {
	t.Run("output", func(t *testing.T) {
		c := atTerminal(t, "/bin/sh", "-c", "seq 1 200000")
		if code := c.Exit(); code != 0 {
			t.Errorf("exit %d", code)
		}
		var want bytes.Buffer
		for i := range 200_000 {
			fmt.Fprintf(&want, "%d\r\n", i+1)
		}
		if got := c.Shown(); got != want.String() {
			t.Errorf("%d bytes of %d, ending in %q", len(got), want.Len(), got[max(0, len(got)-40):])
		}
	})
	t.Run("keys", func(t *testing.T) {
		const size = 1 << 20
		paste := bytes.Repeat([]byte("\x1b[200~all \x00\x03\x04\x11\x13\x1a\x7f\x80\xff\xc3\xa9 bytes\r\n\x1b[201~"), 40_000)[:size]
		c := atTerminal(t, "/bin/sh", "-c", fmt.Sprintf("stty raw -echo; echo st''arted; head -c %d | sha256sum", size))
		c.Expect("started")
		c.Send(string(paste))
		c.Expect(fmt.Sprintf("%x", sha256.Sum256(paste)))
	})
	t.Run("lines", func(t *testing.T) {
		c := atTerminal(t, "/bin/sh", "-c", `echo "$TERM"; stty -echo; echo st''arted; cat; echo e''nd`)
		c.Expect("xterm")
		c.Expect("started")
		c.Send("wörds" + "\x7f" + "\n") // DEL takes one letter off
		c.Expect("wörd\r")
		c.Send(console.CtrlS + "late\n")
		if got := drain(c); strings.Contains(got, "late") {
			t.Errorf("Ctrl-S holds nothing back: %q", got)
		}
		c.Send(console.CtrlQ)
		c.Expect("late")
		c.Send(console.CtrlD)
		c.Expect("end")
		if code := c.Exit(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

// drain is what is shown within a moment.
func drain(c *console.Console) string {
	before := len(c.Shown())
	c.Peek(300 * time.Millisecond)
	return c.Shown()[before:]
}

// Nothing inside has a descriptor of the person's terminal, but what the program
// sees looks like one: it has its place in a file system of terminals of its own.
func TestTerminalIsNotThePersons(t *testing.T) {
	c := atTerminal(t, "/bin/sh", "-c", `stat -L -c 'fs %d' /dev/pts /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; tty; ls /dev/console`)
	own := c.Expect(`fs (\d+)\r`)
	for range 3 {
		if got := c.Expect(`fs (\d+)\r`); got != own {
			t.Errorf("a standard file in file system %s, /dev/pts is %s", got, own)
		}
	}
	c.Expect("/dev/pts/0\r")
	c.Expect("(?i)no such file")
	var st unix.Stat_t
	if err := unix.Stat(c.Name(), &st); err != nil || fmt.Sprint(st.Dev) == own {
		t.Errorf("the person's terminal is in file system %d, %v", st.Dev, err)
	}
}

// A process that left the program's session reads whatever terminal it was given or
// could open before.
const readsTerminal = `exec 3<&0; (: </dev/tty) && exec 4</dev/tty; setsid /bin/sh -c 'tell() { while read -r x; do echo "$x" >&2; done; }; echo st""arted; tell <&3; tell <&4' &`

// TestTerminalAttackShell types a password into the shell outside while the launcher
// is stopped, and while it runs in the background.
func TestTerminalAttackShell(t *testing.T) {
	for _, way := range []string{"stopped", "background", "without the guard"} {
		t.Run(way, func(t *testing.T) {
			c := atShell(t)
			stolen := filepath.Join(t.TempDir(), "stolen")
			line := self(t) + " launch "
			if way == "without the guard" {
				line += "-skip=terminal "
			}
			line += "/bin/sh -c '" + strings.ReplaceAll(readsTerminal+` exec sleep 1000`, "'", `'\''`) + "' 2>" + stolen
			if way == "background" {
				line += " </dev/null >/dev/null &"
			}
			c.Send(line + "\n")
			if way != "background" {
				c.Expect("started")
			}
			if way == "stopped" {
				c.Send(console.CtrlZ)
				c.Expect("Stopped")
			}
			if way == "without the guard" {
				// Nothing relays Ctrl-Z then: the launcher is stopped by hand.
				c.Send(console.CtrlZ)
			}
			c.Expect("ready> ")
			var lost int
			for range 8 {
				c.Send("read -r -t 2 pw; echo g''ot:$pw:\n")
				c.Peek(100 * time.Millisecond)
				c.Send("correct-horse\n")
				c.Peek(100 * time.Millisecond)
			}
			inside, err := os.ReadFile(stolen)
			lost = 8 - strings.Count(c.Shown(), "got:correct-horse:")
			typed := strings.Contains(string(inside), "correct-horse") || strings.Contains(string(inside), "pw; echo")
			if attack := way == "without the guard"; err != nil || attack != (lost > 0 && typed) {
				t.Errorf("the shell lost %d of 8 passwords; inside: %q, %v", lost, inside, err)
			}
		})
	}
}

// While the terminal is the launcher's, nothing from inside reaches it, and no key
// reaches the inside, whatever was written before.
func TestTerminalHold(t *testing.T) {
	c := console.Start(t, console.Options{}, self(t), "launch", "-ask", "/bin/bash", "-c",
		`setsid sh -c 'while :; do printf "\033[H\033[2Jnoise"; done' & printf '\033[8m\033(0st''arted\n'; while read -t 60 x; do echo "got $x"; done`)
	c.Expect("started")
	for range 3 {
		c.Expect("noise")
		c.Cmd.Process.Signal(syscall.SIGIO)
		c.Expect(`\x1b\(B(?s:.*)the question: `)
		before := len(c.Shown())
		c.Peek(200 * time.Millisecond)
		if more := c.Shown()[before:]; more != "" {
			t.Errorf("over the question: %q", more)
		}
		c.Send("my answer\n")
		c.Expect(`the answer was "my answer\\n"`)
	}
	c.Send("mine\n")
	c.Expect("got mine")
	if strings.Contains(c.Shown(), "got my answer") {
		t.Error("the answer went inside as well")
	}
	c.Send(console.CtrlC)
	if code := c.Exit(); code != 130 {
		t.Errorf("exit %d", code)
	}
}
