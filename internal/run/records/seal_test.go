package records

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What launch did not write is not trusted, and does not become so by the way.
func TestSeal(t *testing.T) {
	s, dir := open(t)
	file := filepath.Join(dir, "sandboxes/box/sandbox.json")
	read := func() Sandbox {
		t.Helper()
		b, err := s.Sandbox("box")
		must(t, err)
		return b
	}
	must(t, s.Trusted(read()))
	must(t, s.Renew("box", func(b *Sandbox) { b.Flags = []string{"--allow=good.test", "--env=\xff\u2028<é>"} }))
	must(t, s.Trusted(read()))
	must(t, s.Renew("box", func(b *Sandbox) { b.Flags = []string{} }))
	must(t, s.Trusted(read()))
	must(t, s.Renew("box", func(b *Sandbox) { b.Flags = []string{"--allow=good.test"} }))
	good, err := os.ReadFile(file)
	must(t, err)
	for _, change := range [][2]string{
		{"--allow=good.test", "--allow=evil.test"},
		{`"--allow=good.test"`, `"--allow=good.test", "--isolation=env"`},
		{`"workspace": "/w"`, `"workspace": "/"`},
		{`"tier": "process"`, `"tier": "hermetic"`},
		{`"seal": "`, `"seal": "0`},
		{`"seal"`, `"other"`},
	} {
		must(t, os.WriteFile(file, []byte(strings.Replace(string(good), change[0], change[1], 1)), 0o600))
		if err := s.Trusted(read()); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", change[1], err)
		}
		must(t, s.Update("box", func(b *Sandbox) { b.Status = Stopped }))
		if err := s.Trusted(read()); !errors.Is(err, ErrChanged) {
			t.Errorf("%s, after an update: %v", change[1], err)
		}
	}
	must(t, s.Renew("box", func(b *Sandbox) { b.Flags = nil }))
	must(t, s.Trusted(read()))
	must(t, os.WriteFile(file, good, 0o600))
	must(t, s.Trusted(read()))
	must(t, s.Update("box", func(b *Sandbox) { b.Status = Stopped }))
	must(t, s.Trusted(read()))
	must(t, os.Remove(filepath.Join(dir, keyFile)))
	if err := s.Trusted(read()); !errors.Is(err, ErrChanged) {
		t.Errorf("with another key: %v", err)
	}
}

func TestSealOfLauncher(t *testing.T) {
	s, _ := open(t)
	r := start(t, s)
	defer r.Finish("", code(0), "") //nolint:errcheck // not what is tested
	p, err := s.Process("box", r.Process().ID)
	must(t, err)
	must(t, s.TrustedLauncher(p))
	p.Metadata.Launcher = 1234
	if err := s.TrustedLauncher(p); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

func TestStartedAt(t *testing.T) {
	a, err := StartedAt(os.Getpid())
	must(t, err)
	b, err := StartedAt(os.Getpid())
	must(t, err)
	if a != b {
		t.Errorf("%q and %q", a, b)
	}
	// Not the parent: it may have started in the same hundredth of a second. Process 1 is hidden on some machines.
	if first, err := StartedAt(1); err == nil && first == a && os.Getpid() != 1 {
		t.Errorf("process 1 started at %q as well", first)
	}
	if _, err := StartedAt(1 << 30); a != "" && err == nil {
		t.Error("nobody has a start")
	}
}
