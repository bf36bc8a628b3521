//go:build linux

package hermetic

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox"
	"egressd/sandbox/hermetic/control"
)

// With an overlay nothing below the workspace is different afterwards: not a
// byte, a mode or a time.
func TestOverlayLeavesAllAsItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f", "a/g", "a/b/h"} {
		put(t, filepath.Join(dir, name), "x\n")
	}
	if err := os.Symlink("f", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	was := look(t, dir)
	o := run(t, &Backend{Overlay: true}, sandbox.Spec{Dir: dir, Script: `echo z >>a/g; mv a c; mkdir -p n/m; echo q >l; chmod 600 f; touch -d @5 c/b/h; sed -i s/x/y/ c/g
ln f h2; truncate -s 5 zz; ln -sf / l; rm -rf c/b; rm -rf /*; tar cf t.tar .; echo done`})
	if o.out != "done\n" || o.failure != nil || len(o.changes) == 0 {
		t.Errorf("%+v", o)
	}
	if is := look(t, dir); is != was {
		t.Errorf("is\n%s\nwas\n%s", is, was)
	}
}

// Changes that could not be listed are not said to be none.
func TestChangesUnknown(t *testing.T) {
	for total, want := range map[int]bool{-1: false, 0: true} {
		told := false
		b := &Backend{Overlay: true, Changed: func([]Change, int) { told = true }}
		(&running{b: b, ended: &control.EndReport{Total: total}}).tellChanges()
		if told != want {
			t.Errorf("total %d: told %t, want %t", total, told, want)
		}
	}
}

// What sed says of a full disk is what the real one says, not what the language
// it is written in would.
func TestWriteErrors(t *testing.T) {
	o := run(t, &Backend{}, sandbox.Spec{Script: "yes | head -n 99999 | sed -n 'w /dev/full'; for c in 'seq 99999' 'awk BEGIN{for(;;)print}' 'jq -n range(99999)' 'find / -printf x' 'tar cf - /'; do $c >/dev/full; done"})
	if !strings.Contains(o.err, "No space left on device") || strings.Contains(o.err, "no space") || strings.Contains(o.err, "write /") {
		t.Errorf("%s", o.err)
	}
}
