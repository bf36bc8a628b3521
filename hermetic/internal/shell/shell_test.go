package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *buffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *buffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// bench is a session on a directory, with a few commands.
type bench struct {
	dir    string
	limits limits.Limits
	env    []string
	stdin  *os.File
	table  command.Table
	out    buffer
	errs   buffer
}

func newBench(t *testing.T) *bench {
	return &bench{dir: t.TempDir(), table: command.Table{"cat": cat, "yes": yes, "sleep": sleep, "env": printEnv, "panic": panics, "run": runs}}
}

func (b *bench) run(ctx context.Context, t *testing.T, script string) (int, error) {
	t.Helper()
	ctx, budget, stop := limits.New(ctx, b.limits)
	defer stop()
	fs, err := vfs.Open(vfs.Config{Dir: b.dir, Written: budget.Written})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	return Run(ctx, Config{
		Name: "bash", Dir: "/", Stdin: b.stdin, Stdout: &b.out, Stderr: &b.errs, Env: b.env, Commands: b.table,
		Session: &command.Session{FS: fs, Budget: budget, Now: time.Now},
	}, script)
}

// output runs script to its end and reports its standard output.
func output(t *testing.T, script string) string {
	t.Helper()
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := b.run(ctx, t, script); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return b.out.String()
}

func cat(_ context.Context, c *command.Call) int {
	if len(c.Args) == 1 {
		if _, err := io.Copy(c.Stdout, c.Stdin); err != nil {
			return 1
		}
		return 0
	}
	for _, name := range c.Args[1:] {
		f, err := c.FS.Open(c.Path(name))
		if err != nil {
			return c.Fail(1, "%s: %s", name, command.Reason(err))
		}
		_, err = io.Copy(c.Stdout, f)
		f.Close()
		if err != nil {
			return 1
		}
	}
	return 0
}

func yes(ctx context.Context, c *command.Call) int {
	for ctx.Err() == nil {
		if _, err := io.WriteString(c.Stdout, "y\n"); err != nil {
			if errors.Is(err, syscall.EPIPE) {
				return 141
			}
			return 1
		}
	}
	return 1
}

// sleep waits until its context ends.
func sleep(ctx context.Context, _ *command.Call) int {
	<-ctx.Done()
	return 1
}

func printEnv(_ context.Context, c *command.Call) int {
	io.WriteString(c.Stdout, strings.Join(c.Env, "\n")+"\n")
	return 0
}

func panics(context.Context, *command.Call) int { panic("oh") }

func runs(ctx context.Context, c *command.Call) int {
	return c.Exec(ctx, c.With(c.Args[1:], nil, nil, nil))
}

func TestLimits(t *testing.T) {
	small := limits.Limits{Commands: 5000, Steps: 1_000_000, Loops: 2000, String: 1 << 20, Array: 2000, Files: 50, Jobs: 50}
	for _, tt := range []struct{ name, script, limit string }{
		{"function", `f(){ f; }; f`, "calls"},
		{"eval", `f(){ eval f; }; f`, "calls"},
		{"substitution", `f(){ echo $(f); }; f`, "calls"},
		{"source", `echo '. ./s' > s; . ./s`, "calls"},
		{"sh -c", `export c='sh -c "$c"'; eval "$c"`, "calls"},
		{"loop", `while :; do :; done`, "loops"},
		{"c loop", `for((;;)); do x=1; done`, "loops"},
		{"commands", `f() { :; :; :; }; for i in {1..1900}; do f; done`, "commands"},
		{"assignment", `x=aaaaaaaa; while :; do x=$x$x; done`, "string"},
		{"append", `x=aaaaaaaa; while :; do x+=$x; done`, "string"},
		{"replacement", `x=aaaaaaaa; while :; do x=${x//a/bbbb}; x=${x//b/a}; done`, "string"},
		{"here-string", `x=aaaaaaaa; while :; do read x <<< "$x$x"; done`, "string"},
		{"printf -v", `printf -v x %99999999d 1`, "string"},
		{"printf", `printf %99999999d 1`, "string"},
		{"wide directives", `printf %500000d%500000d%500000d 1 2 3`, "string"},
		{"wide dates", `printf -v f '%%4000d%.0s' {1..1000}; printf "%($f)T" 1`, "string"},
		{"captured", `x=$(yes)`, "string"},
		{"array", `while :; do a+=(1 2 3); done`, "array"},
		{"regular expression", `re='^(a*)(a*)(a*)\2\1b$' x=$(printf 'a%.0s' {1..300})xb; [[ $x =~ $re ]]`, "steps"},
		{"braces", `echo {1..1000000}`, "globs"},
		{"brace product", `echo {1..999}{1..999}`, "globs"},
		{"descriptors", `i=3; while :; do eval "exec $i>&1"; i=$((i+1)); done`, "files"},
		{"jobs", `while :; do sleep & done`, "jobs"},
		{"fork bomb", `:(){ :|:& };:`, ""},
		{"parentheses", strings.Repeat("(", 60000), "nesting"},
		{"parameters", strings.Repeat("${a:-", 20000), "nesting"},
		{"list", strings.Repeat("true && ", 60000) + "true", "nesting"},
		{"elif", strings.Repeat("if false; then :; el", 20000) + "if true; then :; fi", "nesting"},
		{"source bytes", "# " + strings.Repeat("x", 5<<20), "source"},
	} {
		b := newBench(t)
		b.limits = small
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		status, err := b.run(ctx, t, "echo before\n"+tt.script+"\necho after")
		cancel()
		var e *limits.Exceeded
		if status != 126 || !errors.As(err, &e) || tt.limit != "" && e.Name != tt.limit {
			t.Errorf("%s: status %d, %v, want limit %q", tt.name, status, err, tt.limit)
		}
		if tt.limit != "" && strings.Contains(b.out.String(), "after") {
			t.Errorf("%s: went on", tt.name)
		}
		if tt.limit != "nesting" && tt.limit != "source" && !strings.HasPrefix(b.out.String(), "before\n") {
			t.Errorf("%s: the output before is lost: %q", tt.name, b.out.String())
		}
	}
}

// TestCancel ends runs that wait, in every way of waiting, and checks that
// nothing of them is left.
func TestCancel(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, script := range []string{
		`sleep`, `cat <(sleep)`, `sleep | cat`, `sleep & wait`, `sleep & wait -n`, `read x < <(sleep)`, `x=$(sleep)`,
		`while :; do sleep; done`, `sleep & sleep & exit`, `exec 3> >(sleep); echo x`, `mapfile a < <(sleep)`, `bash -c 'sleep & wait'`,
		`yes | sleep`, `yes > /dev/null`, `coproc cat; read -u ${COPROC[0]} x`, `trap 'sleep' EXIT`, `run sleep`, `cat`, `read x`,
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t)
		b.stdin = r
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.run(ctx, t, script)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: goes on after its context", script)
		}
		cancel()
		r.Close()
		w.Close()
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+1 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines before, %d after\n%s", before, n, buf[:runtime.Stack(buf, true)])
	}
}

func TestBrokenPipe(t *testing.T) {
	if got := output(t, `yes | { read x; echo $x; }; echo ${PIPESTATUS[@]}`); got != "y\n141 0\n" {
		t.Errorf("got %q", got)
	}
}

func TestPanic(t *testing.T) {
	b := newBench(t)
	if _, err := b.run(t.Context(), t, `panic; echo $?`); err != nil || b.out.String() != "125\n" || !strings.Contains(b.errs.String(), "panic: a bug ended this command: oh") {
		t.Errorf("%v, %q, %q", err, b.out.String(), b.errs.String())
	}
}

// TestEnvironment checks that commands get what is exported, each name once.
func TestEnvironment(t *testing.T) {
	b := newBench(t)
	b.env = []string{"A=1", "B=2", "PATH=/bin"}
	b.run(t.Context(), t, `C=3; export D=4 A=5; unset B; f() { local A=6; E=7 env; }; f`)
	lines := map[string]int{}
	for _, l := range strings.Split(strings.TrimSpace(b.out.String()), "\n") {
		name, _, _ := strings.Cut(l, "=")
		lines[name]++
		if lines[name] > 1 {
			t.Errorf("%s is there twice", name)
		}
	}
	for _, want := range []string{"A=6", "D=4", "E=7", "PATH=/bin", "PWD=/", "SHLVL=1"} {
		if !strings.Contains("\n"+b.out.String(), "\n"+want+"\n") {
			t.Errorf("%s is missing in %q", want, b.out.String())
		}
	}
	if lines["B"]+lines["C"] > 0 {
		t.Errorf("not exported: %q", b.out.String())
	}
}

// TestOutputKept checks that output before the limit is kept.
func TestOutputKept(t *testing.T) {
	b := newBench(t)
	b.limits = limits.Limits{Output: 1000}
	status, err := b.run(t.Context(), t, `yes`)
	if status != 126 || err == nil || len(b.out.String()) != 1000 {
		t.Errorf("%d, %v, %d bytes", status, err, len(b.out.String()))
	}
}

// TestSubscriptsOfThemselves evaluates names whose subscripts name them. That
// ends where bash ends it, long before the stack is full.
func TestSubscriptsOfThemselves(t *testing.T) {
	for _, script := range []string{
		`a='b[a]'; b='a[b]'; echo $((a[b]))`,
		`b='a[a[a]]'; a=b; echo $((a))`,
		`b='a[a[a]]'; a=b; let a`,
	} {
		b := newBench(t)
		if _, err := b.run(t.Context(), t, script+"\necho after"); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		if out := b.errs.String(); !strings.Contains(out, "expression recursion level exceeded") || len(out) > 1000 {
			t.Errorf("%s: %.300q", script, out)
		}
	}
}
