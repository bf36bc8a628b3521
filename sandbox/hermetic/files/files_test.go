package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/limits"
	"egressd/sandbox/hermetic/vfs"
)

// recorded is what the real commands did (coreutils 9.1, tree 2.1.0, file 5.44)
// in a directory with Files, as user 1000 with umask 022.
type recorded struct {
	Files []struct {
		Name, Text, Link string
		Dir              bool
		Mode             uint32
		Time             int64
	}
	Cases []struct {
		Args            []string
		Stdin, Out, Err string
		Status          int
		Add, Gone       []string // what has come and gone below the directory
	}
}

func load(t *testing.T, name string) (r recorded) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r recorded) make(t *testing.T, root string) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.Files {
		p := filepath.Join(root, f.Name)
		switch {
		case f.Dir:
			check(os.Mkdir(p, 0o755))
		case f.Link != "":
			check(os.Symlink(f.Link, p))
		default:
			check(os.WriteFile(p, []byte(f.Text), 0o644))
			if f.Mode != 0 {
				check(os.Chmod(p, fs.FileMode(f.Mode)))
			}
			if f.Time == 0 {
				f.Time = 1700000000
			}
			check(os.Chtimes(p, time.Unix(f.Time, 0), time.Unix(f.Time, 0)))
		}
	}
}

// state lists what lies below root.
func state(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		fi, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case fi.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			list = append(list, rel+" -> "+to)
		case fi.IsDir():
			bits := fi.Mode().Perm()
			if fi.Mode()&fs.ModeSticky != 0 {
				bits |= 0o1000
			}
			list = append(list, fmt.Sprintf("%s/ %o", rel, bits))
		default:
			list = append(list, fmt.Sprintf("%s %o %d", rel, fi.Mode().Perm(), fi.Size()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// call runs one command over root.
func call(t *testing.T, root, stdin string, args ...string) (status int, out, errs string) {
	t.Helper()
	ctx, budget, stop := limits.New(context.Background(), limits.Limits{})
	defer stop()
	f, err := vfs.Open(vfs.Config{Dir: root, Written: budget.Written})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var o, e bytes.Buffer
	s := &command.Session{FS: f, Budget: budget, Now: func() time.Time { return time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC) }}
	cmd := Commands()[args[0]]
	if cmd == nil {
		t.Fatalf("no command %s", args[0])
	}
	status = cmd(ctx, &command.Call{Args: args, Stdin: strings.NewReader(stdin), Stdout: &o, Stderr: &e, Dir: "/", Umask: 0o022, Session: s})
	return status, o.String(), e.String()
}

func TestAsTheRealOnes(t *testing.T) {
	r := load(t, "files.json")
	for _, c := range r.Cases {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			root := t.TempDir()
			r.make(t, root)
			before := state(t, root)
			status, out, errs := call(t, root, c.Stdin, c.Args...)
			if status != c.Status || out != c.Out || errs != c.Err {
				t.Errorf("status %d, want %d\n%q\nwant\n%q\nerrors\n%q\nwant\n%q", status, c.Status, out, c.Out, errs, c.Err)
			}
			after := state(t, root)
			add := slices.DeleteFunc(slices.Clone(after), func(s string) bool { return slices.Contains(before, s) })
			gone := slices.DeleteFunc(slices.Clone(before), func(s string) bool { return slices.Contains(after, s) })
			if !slices.Equal(add, c.Add) || !slices.Equal(gone, c.Gone) {
				t.Errorf("there came %q\nwant %q\nand went %q\nwant %q", add, c.Add, gone, c.Gone)
			}
		})
	}
}
