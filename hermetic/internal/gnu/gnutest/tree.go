package gnutest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// tree is a recording of commands that change files: what they did in a
// directory with Files, as user 1000 with umask 022.
type tree struct {
	Files []struct {
		Name, Text, Link string
		Dir              bool
		Mode             uint32
		Time             int64
	}
	Cases []treeCase
}

// treeCase is one call, and what came and went below the directory.
type treeCase struct {
	Args, Env       []string
	Stdin, Out, Err string
	Status          int
	Add, Gone       []string
}

// Changes runs every case of a recording of commands that change files, each in
// a workspace of its own. Where sorted is set, the order of lines of the output
// does not count. The commands can call each other, and "echo", "true" and
// "false".
func Changes(t *testing.T, table command.Table, recording []byte, sorted bool) {
	t.Helper()
	var all tree
	if err := json.Unmarshal(recording, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) < 50 {
		t.Fatalf("only %d cases", len(all.Cases))
	}
	for name, status := range map[string]int{"echo": 0, "true": 0, "false": 1} {
		table[name] = func(_ context.Context, c *command.Call) int {
			if name == "echo" {
				fmt.Fprintln(c.Stdout, strings.Join(c.Args[1:], " "))
			}
			return status
		}
	}
	for _, c := range all.Cases {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			fsys, err := vfs.Open(vfs.Config{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer fsys.Close()
			all.make(t, fsys)
			c.run(t, table, fsys, sorted)
		})
	}
}

func (c treeCase) run(t *testing.T, table command.Table, fsys *vfs.FS, sorted bool) {
	t.Helper()
	before := state(t, fsys)
	ctx, budget, stop := limits.New(t.Context(), limits.Limits{})
	defer stop()
	var o, e bytes.Buffer
	s := &command.Session{FS: fsys, Budget: budget, Now: func() time.Time { return time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC) }}
	s.Find = func(_, name string) (string, bool) { return "/usr/bin/" + name, table[name] != nil }
	s.Exec = func(ctx context.Context, c *command.Call) int { return table[c.Args[0]](ctx, c) }
	if table[c.Args[0]] == nil {
		t.Fatalf("no command %s", c.Args[0])
	}
	status := s.Exec(ctx, &command.Call{Args: c.Args, Stdin: strings.NewReader(c.Stdin), Stdout: &o, Stderr: &e, Dir: "/", Env: c.Env, Umask: 0o022, Session: s})
	out := o.String()
	if sorted {
		lines := strings.Split(out, "\n")
		slices.Sort(lines)
		out = strings.Join(lines, "\n")
	}
	if status != c.Status || out != c.Out || e.String() != c.Err {
		t.Errorf("status %d, want %d\n%q\nwant\n%q\nerrors\n%q\nwant\n%q", status, c.Status, out, c.Out, e.String(), c.Err)
	}
	after := state(t, fsys)
	add := slices.DeleteFunc(slices.Clone(after), func(s string) bool { return slices.Contains(before, s) })
	gone := slices.DeleteFunc(slices.Clone(before), func(s string) bool { return slices.Contains(after, s) })
	if !slices.Equal(add, c.Add) || !slices.Equal(gone, c.Gone) {
		t.Errorf("there came %q\nwant %q\nand went %q\nwant %q", add, c.Add, gone, c.Gone)
	}
}

func (r tree) make(t *testing.T, fsys *vfs.FS) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.Files {
		switch name := "/" + f.Name; {
		case f.Dir:
			check(fsys.Mkdir(name, 0o755))
		case f.Link != "":
			check(fsys.Symlink(f.Link, name))
		default:
			write(t, fsys, f.Name, f.Text)
			if f.Mode != 0 {
				check(fsys.Chmod(name, fs.FileMode(f.Mode)))
			}
			if f.Time == 0 {
				f.Time = 1700000000
			}
			check(fsys.Chtimes(name, time.Unix(f.Time, 0), time.Unix(f.Time, 0), true))
		}
	}
}

// state lists what is there, sorted: "a 644 12", "d/ 755", "l -> a".
func state(t *testing.T, fsys *vfs.FS) (list []string) {
	t.Helper()
	var below func(dir string)
	below = func(dir string) {
		entries, err := fsys.ReadDir("/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := dir + e.Name()
			fi, err := fsys.Lstat("/" + name)
			if err != nil {
				t.Fatal(err)
			}
			switch m := fi.Mode(); {
			case m&fs.ModeSymlink != 0:
				to, _ := fsys.Readlink("/" + name)
				list = append(list, name+" -> "+to)
			case m.IsDir():
				bits := m.Perm()
				if m&fs.ModeSticky != 0 {
					bits |= 0o1000
				}
				list = append(list, fmt.Sprintf("%s/ %o", name, bits))
				below(name + "/")
			default:
				list = append(list, fmt.Sprintf("%s %o %d", name, m.Perm(), fi.Size()))
			}
		}
	}
	below("")
	slices.Sort(list)
	return list
}
