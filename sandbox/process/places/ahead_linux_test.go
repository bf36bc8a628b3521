package places

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
	"egressd/sandbox/process/control"
)

// bush makes a tree of directories with a few names in it that run later.
func bush(t *testing.T, wide int) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range wide {
		for _, sub := range []string{"a/b/c/d/e", "src/.vscode", "lib/.git/hooks", "node_modules/x/.idea"} {
			if err := os.MkdirAll(fmt.Sprintf("%s/%d/%s", root, i, sub), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(fmt.Sprintf("%s/%d/a/b/.envrc", root, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func planned(t *testing.T, work string, ahead *Ahead) *Plan {
	t.Helper()
	gate, err := files.Section{}.In(files.Place{Workspace: work, Home: "/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Find(Machine{
		Gate: gate, Ahead: ahead, Roots: []string{"/tmp", "/var/tmp", filepath.Dir(work)},
		Binds: []control.Bind{{Path: work, Source: work, Dir: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// What was read ahead changes no plan, wherever the reading is when it is asked for.
func TestReadAhead(t *testing.T) {
	for _, wide := range []int{1, readersFrom, 30} {
		root := bush(t, wide)
		want := planned(t, root, nil)
		ahead := ReadAhead(root)
		if (ahead != nil) != (wide >= readersFrom) {
			t.Errorf("%d directories: read ahead: %v", wide, ahead != nil)
		}
		if got := planned(t, root, ahead); !reflect.DeepEqual(got, want) {
			t.Errorf("%d directories: %d places and %d directories to watch, want %d and %d",
				wide, len(got.Places), len(got.Watch), len(want.Places), len(want.Watch))
		}
		ahead.Close()
		if !want.Known[root+"/0/a/b/.envrc"] {
			t.Error("the search did not find .envrc")
		}
	}
}

// It is the list that is used, and a reader that nobody asks ends.
func TestReadAheadUsed(t *testing.T) {
	root := bush(t, readersFrom)
	ahead := ReadAhead(root)
	for _, above := range []string{"", "/1", "/1/a"} { // a search comes from above
		if ahead.take(root+above) == nil {
			t.Fatalf("%q was not read", above)
		}
	}
	seen := map[string]uint8{}
	each(ahead.take(root+"/1/a/b"), func(name []byte, kind uint8) { seen[string(name)] = kind })
	if want := map[string]uint8{"c": unix.DT_DIR, ".envrc": unix.DT_REG}; !reflect.DeepEqual(seen, want) {
		t.Errorf("read %v, want %v", seen, want)
	}
	if ahead.take(root+"/1/node_modules") != nil || ahead.take("/nowhere") != nil {
		t.Error("something was read that no search reads")
	}
	ahead.Close()
	ReadAhead(root).Close()
}
