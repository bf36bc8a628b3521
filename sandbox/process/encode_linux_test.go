package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"egressd/sandbox"
)

func TestEncode(t *testing.T) {
	for _, in := range []message{
		{Go: &goAhead{}},
		{Go: &goAhead{Env: []string{"A=plain", "B=\xff\xfe", `C=\ufffd`, "D=\ufffd", "E=<&>"}}},
		{Config: &config{Argv: []string{"a\xffb", ""}, Dir: "/\xe4", Skip: map[string]bool{"x": true}}},
		{Stopped: &stopReport{}},
	} {
		data, err := encode(&in)
		if err != nil {
			t.Fatal(err)
		}
		var out message
		if err := decode(data, &out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, out); diff != "" {
			t.Error(diff)
		}
	}
	for _, bad := range []string{"", "x{}", "j{", "g\x01"} {
		if err := decode([]byte(bad), new(message)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// Arguments, variables and directories are bytes, not text.
func TestBytes(t *testing.T) {
	dir := filepath.Join(tempDir(t, "/tmp"), "d\xff")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	res := run(t, new(Backend), sandbox.Spec{
		Argv: []string{"/bin/sh", "-c", `printf '%s %s ' "$1" "$X"; pwd`, "sh", "a\xffb"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "X=\xfe"},
	})
	if want := "a\xffb \xfe " + dir + "\n"; res.out != want {
		t.Errorf("got %q, want %q (%v)", res.out, want, res.err)
	}
}
