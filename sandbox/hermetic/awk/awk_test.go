package awk

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/limits"
	"egressd/sandbox/hermetic/vfs"
)

//go:embed testdata/cases.json
var recorded []byte

// latin keeps bytes as characters: JSON has no bytes.
func latin(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// session makes a directory of files and says how to call a command in it.
func session(t testing.TB, files map[string]string, bounds limits.Limits) func(stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fsys, err := vfs.Open(vfs.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return func(stdin string, args ...string) (string, string, int) {
		ctx, budget, stop := limits.New(context.Background(), bounds)
		defer stop()
		var out, errs bytes.Buffer
		s := &command.Session{FS: fsys, Budget: budget, Now: func() time.Time { return time.Unix(1e9, 0) }, Exec: fakeShell}
		c := &command.Call{
			Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Dir: "/", Umask: 0o022,
			Env: []string{"LC_ALL=C.UTF-8", "TZ=UTC", "FOO=bar"}, Session: s,
		}
		status := Commands()[args[0]](ctx, c)
		if err := budget.Cause(); err != nil {
			return out.String(), err.Error(), 126
		}
		return out.String(), errs.String(), status
	}
}

// fakeShell knows "cat", "sort" and "exit 3".
func fakeShell(_ context.Context, c *command.Call) int {
	switch line := c.Args[2]; line {
	case "cat":
		var b bytes.Buffer
		_, _ = b.ReadFrom(c.Stdin)
		_, _ = c.Stdout.Write(b.Bytes())
	case "exit 3":
		return 3
	default:
		_, _ = c.Stdout.Write([]byte("ran " + line + "\n"))
	}
	return 0
}

func TestRecorded(t *testing.T) {
	var all struct {
		Files map[string]string
		Stdin string
		Cases []struct {
			Args   []string
			Stdout string
			Status int
		}
	}
	if err := json.Unmarshal(recorded, &all); err != nil {
		t.Fatal(err)
	}
	for name, text := range all.Files {
		all.Files[name] = latin(text)
	}
	run := session(t, all.Files, limits.Limits{})
	for _, c := range all.Cases {
		args := append([]string{"awk"}, c.Args...)
		out, errs, status := run(latin(all.Stdin), args...)
		if out != latin(c.Stdout) || status != c.Status {
			t.Errorf("%q: status %d, want %d\n got %q\nwant %q\n%s", args, status, c.Status, out, latin(c.Stdout), errs)
		}
	}
}

func TestStreams(t *testing.T) {
	run := session(t, map[string]string{"in": "b 1\na 2\n"}, limits.Limits{})
	for _, c := range []struct{ prog, want string }{
		{`{print $1 | "cat"} END{close("cat"); print "end"}`, "b\na\ns\nend\n"},
		{`BEGIN{while(("date" | getline x) > 0) print "[" x "]"; print system("exit 3"), close("date"), close("none")}`, "[ran date]\n3 0 -1\n"},
		{`BEGIN{print "one" > "f"; print "two" >> "f"; close("f"); while((getline l < "f")>0) print l}`, "one\ntwo\n"},
		{`BEGIN{print (getline x < "nonexistent")}`, "-1\n"},
		{`{print FILENAME, FNR, v}`, "in 1 7\nin 2 7\n- 1 7\n"},
		{`BEGIN{print ENVIRON["FOO"], ARGC, ARGV[1]; exit}`, "bar 4 v=7\n"},
		{`BEGIN{print strftime("%F %T", systime()); exit}`, "2001-09-09 01:46:40\n"},
	} {
		if out, errs, _ := run("s\n", "awk", c.prog, "v=7", "in", "-"); out != c.want {
			t.Errorf("%s: %q, want %q (%s)", c.prog, out, c.want, errs)
		}
	}
}

func TestBounds(t *testing.T) {
	run := session(t, nil, limits.Limits{Steps: 1e6, Memory: 32 << 20, String: 1 << 20})
	for prog, want := range map[string]int{
		"BEGIN{while(1);}": 126, "BEGIN{for(;;)x=x \"a\"}": 126, "BEGIN{x=\"a\";while(1)x=x x}": statusFatal,
		"function f(){f()} BEGIN{f()}": statusFatal, "BEGIN{while(1)a[i++]}": statusFatal, "BEGIN{printf \"%999999999d\",1}": statusFatal,
		"BEGIN{$999999999=1}": statusFatal,
	} {
		if _, errs, status := run("", "awk", prog); status != want {
			t.Errorf("%s: status %d %.100q, want %d", prog, status, errs, want)
		}
	}
	if _, _, status := run("", "awk", "BEGIN{x="+strings.Repeat("(", 100000)); status != statusSyntax {
		t.Errorf("deep nesting: status %d", status)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"{print $1}", "/a/,/b/{x[$1]++}", "BEGIN{while((getline l < \"f\")>0) print l}", "function f(a){return a+1}{print f($2)}"} {
		f.Add(s)
	}
	run := session(f, nil, limits.Limits{Steps: 1e5, Memory: 16 << 20, String: 1 << 20})
	f.Fuzz(func(_ *testing.T, prog string) { run("a b\nc d\n", "awk", prog) })
}
