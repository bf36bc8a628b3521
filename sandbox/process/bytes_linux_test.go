package process

import (
	"os"
	"path/filepath"
	"testing"

	"egressd/sandbox"
)

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
