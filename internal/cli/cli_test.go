package cli

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseLimit(t *testing.T) {
	for in, want := range map[string]time.Duration{"90": 90 * time.Second, "90s": 90 * time.Second, "10m": 10 * time.Minute, "0": 0, "-1": 0, "x": 0, "": 0, "99999999999": 0} {
		got, err := ParseLimit(in)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("ParseLimit(%q) = %v, %v", in, got, err)
		}
	}
}

func TestParseLoopback(t *testing.T) {
	for in, want := range map[string]string{
		"3000": "127.0.0.1:3000", "localhost:80": "127.0.0.1:80", "127.0.0.2:80": "127.0.0.2:80", "[::1]:80": "[::1]:80",
		"::1:80": "[::1]:80", "0.0.0.0:80": "", "8.8.8.8:80": "", "x:80": "", "": "", "0": "", "070": "", "65536": "",
	} {
		got, err := ParseLoopback(in)
		if err == nil != (want != "") || err == nil && got.String() != want {
			t.Errorf("ParseLoopback(%q) = %v, %v; want %q", in, got, err, want)
		}
	}
}

func TestTimeVar(t *testing.T) {
	var d time.Duration
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	TimeVar(fs, &d, "drain", 30*time.Second, "wait for this `TIME`")
	if d != 30*time.Second || fs.Lookup("drain").DefValue != "30s" {
		t.Errorf("%v, %+v", d, fs.Lookup("drain"))
	}
	for in, want := range map[string]time.Duration{"90": 90 * time.Second, "0": 0, "-1s": -time.Second, "1h": time.Hour} {
		if err := fs.Set("drain", in); err != nil || d != want {
			t.Errorf("%q: %v, %v; want %v", in, d, err, want)
		}
	}
	if err := fs.Set("drain", "soon"); err == nil || d != time.Hour && d != 90*time.Second && d != 0 && d != -time.Second {
		t.Errorf("soon: %v, %v", d, err)
	}
}

// An answer goes to one output, everything else to the other; a flag is named as
// it is typed.
func TestOutput(t *testing.T) {
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), name), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	text := func(f *os.File) string {
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	p := &Program{Name: "tool", Stdout: open("out"), Stderr: open("err"), Environ: []string{"AB=1", "A=2"}, Help: func(fs *flag.FlagSet) string { return "help of " + fs.Name() + "\n" }}
	flags := func() *flag.FlagSet {
		fs := flag.NewFlagSet("check", flag.ContinueOnError)
		fs.String("name", "", "")
		return fs
	}
	for _, args := range [][]string{{"--help"}, {"--nmae", "x"}, {"--name"}} {
		if _, done := p.Parse(flags(), args); !done {
			t.Errorf("%q is run", args)
		}
	}
	if code, done := p.Parse(flags(), []string{"--name", "x"}); done || code != ExitOK {
		t.Errorf("%d, %v", code, done)
	}
	if code := p.Fail(7, errors.New("one\ntwo")); code != 7 {
		t.Error(code)
	}
	if got, want := text(p.Stdout), "help of check\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	want := "tool: there is no flag --nmae; did you mean --name?\n  see tool help\ntool: a value is missing after --name\n  see tool help\ntool: one\n  two\n"
	if got := text(p.Stderr); got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if p.Getenv("A") != "2" || p.Getenv("B") != "" {
		t.Error("variables are mixed up")
	}
}

func TestPaint(t *testing.T) {
	for _, tt := range []struct {
		mode     ColorMode
		terminal bool
		env      []string
		want     bool
	}{
		{"", true, nil, true},
		{"", false, nil, false},
		{"auto", true, []string{"NO_COLOR=1"}, false},
		{"", true, []string{"NO_COLOR="}, true}, // as no-color.org has it
		{"", true, []string{"TERM=dumb"}, false},
		{"always", false, []string{"NO_COLOR=1"}, true},
		{"never", true, nil, false},
	} {
		if got := (&Program{Environ: tt.env}).Paint(tt.mode, tt.terminal); got.On != tt.want {
			t.Errorf("%+v: %v", tt, got.On)
		}
	}
	var m ColorMode
	if err := m.Set("red"); err == nil || m != "" {
		t.Errorf("--color red: %v, %q", err, m)
	}
	if got := (Paint{On: true}).Bad("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}
