//go:build unix

package vercel

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"egressd/sandbox"
	"egressd/sandbox/vercel/fake"
)

// pipe is a standard input that the test writes.
func (w *world) pipe() (r, held *os.File) {
	w.Helper()
	r, held, err := os.Pipe()
	must(w.T, err)
	w.Cleanup(func() { r.Close(); held.Close() })
	return r, held
}

// A pipe is read as it comes: what it says next depends on what the program printed.
func TestInputAsItComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	in, held := w.pipe()
	printed, out := w.pipe()
	spec := w.spec(`read a; echo "$a, and?"; read b; echo "$b"; sha256sum; exit 3`)
	spec.Stdin, spec.Stdout = in, out
	large := make([]byte, 9<<20+5) // several parts
	_, err := rand.Read(large)
	must(t, err)
	said := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(printed)
		said <- func() error {
			for _, turn := range []struct{ say, want string }{
				{"one\n", "one, and?\n"}, {"two\n", "two\n"}, {string(large), fmt.Sprintf("%x  -\n", sha256.Sum256(large))},
			} {
				if _, err := held.WriteString(turn.say); err != nil {
					return err
				}
				if len(turn.say) > 100 {
					_ = held.Close()
				}
				if got, err := lines.ReadString('\n'); got != turn.want {
					return fmt.Errorf("got %q, %w, want %q", got, err, turn.want)
				}
			}
			return nil
		}()
	}()
	res, err := w.back.Run(t.Context(), spec)
	if err != nil || res.ExitCode != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	out.Close() // a program that printed too little
	if err := <-said; err != nil {
		t.Error(err)
	}
	w.clean()
}

// An endless pipe ends with the program, and is read no faster than the program does:
// without the bound there are soon more parts there than window.
func TestInputEndless(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	in, held := w.pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		line := []byte(strings.Repeat("y\n", 32<<10))
		for {
			if _, err := held.Write(line); err != nil {
				return
			}
		}
	}()
	spec := w.spec(`most=0
for i in $(seq 20); do
	head -c 1048576 >/dev/null
	set -- /tmp/.launch-*-stdin.*.ok
	[ $# -le $most ] || most=$#
done
echo $most; head -n 1`)
	spec.Stdin = in
	res, err := w.back.Run(t.Context(), spec)
	must(t, in.Close())
	<-over
	if err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	most, line, _ := strings.Cut(w.read(w.out), "\n")
	if n, err := strconv.Atoi(most); err != nil || n > window || line != "y\n" && line != "\n" {
		t.Errorf("%s parts were there, want at most %d; then came %q", most, window, line)
	}
	w.clean()
}

// What ends before the program starts, says nothing, or is closed.
func TestInputNone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, want string
		input              func(w *world) *os.File
		feeds              bool
	}{
		{"empty", "cat; echo end", "end\n", func(w *world) *os.File {
			in, held := w.pipe()
			held.Close()
			return in
		}, false},
		{"whole", "cat; echo end", "all\nend\n", func(w *world) *os.File {
			in, held := w.pipe()
			_, err := held.WriteString("all\n")
			must(w.T, err)
			held.Close()
			return in
		}, false},
		{"closed", "cat; echo end", "end\n", func(w *world) *os.File {
			in, _ := w.pipe()
			in.Close()
			return in
		}, false},
		{"a device", "cat; echo end", "end\n", func(w *world) *os.File {
			in, err := os.Open(os.DevNull)
			must(w.T, err)
			w.Cleanup(func() { in.Close() })
			return in
		}, false},
		{"held open", "echo end", "end\n", func(w *world) *os.File {
			in, _ := w.pipe()
			return in
		}, true},
		{"held open after a line", "head -n 1", "line\n", func(w *world) *os.File {
			in, held := w.pipe()
			_, err := held.WriteString("line\nmore")
			must(w.T, err)
			return in
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			spec := w.spec(tt.script)
			spec.Stdin = tt.input(w)
			if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
				t.Fatal(res, err)
			}
			if out := w.read(w.out); out != tt.want {
				t.Errorf("got %q, want %q", out, tt.want)
			}
			fed := false
			for _, r := range w.api.Requests() {
				fed = fed || bytes.Contains(r.Body, []byte("mkfifo"))
			}
			if fed != tt.feeds {
				t.Errorf("came in parts: %t, want %t", fed, tt.feeds)
			}
			w.clean()
		})
	}
}

// A program must not take a part of its input for all of it.
//
// Threat: what passes it on is ended there, or the service refuses a part, and the
// program, which sees its input end, goes on and succeeds.
func TestInputBreaks(t *testing.T) {
	t.Parallel()
	write := "POST /v2/sandboxes/sessions/*/fs/write skip=1 times=-1 "
	for _, tt := range []struct {
		name, fault, script, want string
	}{
		{"refused", write + "status=400", "read x; echo $x; cat; echo all", "write files"},
		{"gone", write + "status=410", "read x; echo $x; cat; echo all", "the sandbox ended while the program ran"},
		{"ended there", "", `read x; kill -9 $(grep -slxz -- "/tmp/.launch-.*-stdin" /proc/[0-9]*/cmdline | sed "s|/proc/||; s|/cmdline||"); echo $x; cat; exit 0`, "the program may have seen only a part"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			in, held := w.pipe()
			_, err := held.WriteString("first\n")
			must(t, err)
			if tt.fault != "" {
				w.fault(tt.fault)
			}
			res, err := w.inputAfterFirst(w.spec(tt.script), in, held)
			if err == nil || !strings.Contains(err.Error(), tt.want) || res.ExitCode == 0 {
				t.Errorf("%+v, %v, want %q", res, err, tt.want)
			}
			w.clean()
		})
	}
}

// inputAfterFirst runs spec, and writes and closes its input when it has printed a line.
func (w *world) inputAfterFirst(spec sandbox.Spec, in, held *os.File) (sandbox.Result, error) {
	w.Helper()
	printed, out := w.pipe()
	spec.Stdin, spec.Stdout = in, out
	rest := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(printed)
		if _, err := lines.ReadString('\n'); err == nil {
			_, _ = held.WriteString("second\n") // a run that has ended does not read it
			_ = held.Close()
		}
		text, _ := io.ReadAll(lines) // what there is
		rest <- string(text)
	}()
	res, err := w.back.Run(w.Context(), spec)
	out.Close()
	if text := <-rest; strings.Contains(text, "all\n") {
		w.Errorf("the program went on: %q", text)
	}
	return res, err
}

// A part whose answer was lost is written again, and comes once.
func TestInputWrittenTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	in, held := w.pipe()
	_, err := held.WriteString("first\n")
	must(t, err)
	w.fault("POST /v2/sandboxes/sessions/*/fs/write reset=after times=2")
	res, err := w.inputAfterFirst(w.spec("read x; echo $x; cat >got"), in, held)
	if err != nil || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	w.has("got", "second\n")
	w.clean()
}

// A run that is given up does not wait for its input; a sandbox that stays has no file
// of it afterwards.
func TestInputGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	in, held := w.pipe()
	printed, out := w.pipe()
	_, err := held.WriteString("first\n")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec := w.spec("read x; echo $x; cat")
	spec.Stdin, spec.Stdout = in, out
	go func() {
		_, _ = bufio.NewReader(printed).ReadString('\n') // the run's error says it
		cancel()
	}()
	if _, err := w.back.Run(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.clean()
	w.back.Name, w.back.Keep = "box", true
	spec.Stdin, spec.Stdout = in, w.out
	_, err = held.WriteString("more\n")
	must(t, err)
	spec.Argv = []string{"head", "-n", "1"}
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if got := w.read(w.out); got != "more\n" {
		t.Errorf("got %q", got)
	}
	w.ok(0, `ls -A /tmp | grep -c stdin; grep -slxz -- "/tmp/.launch-.*-stdin" /proc/[0-9]*/cmdline; :`)
	if got := w.read(w.out); got != "0\n" {
		t.Errorf("left there: %q", got)
	}
}

// More than memory should hold is kept in a file without a name.
func TestLongInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	in := w.file("long")
	must(t, in.Truncate(70<<20))
	spec := w.spec("wc -c")
	spec.Stdin = in
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if out := strings.TrimSpace(w.read(w.out)); out != "73400320" {
		t.Errorf("got %q", out)
	}
	w.clean()
}
