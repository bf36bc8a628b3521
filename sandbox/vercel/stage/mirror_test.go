package stage

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMirror(t *testing.T) {
	start := paths{
		"a": "644 a", "b": "644 b", "run": "644 #!", "l": "-> a", "d/x": "644 x", "d/y": "644 y", "e/z": "644 z", "none": "dir", "f": "644 f",
		"dir/in": "644 in", ".gitignore": "644 *.log\n", "x.log": "644 mine", "node_modules/m": "644 m", ".git/config": "644 c",
	}
	dir := t.TempDir()
	start.make(t, dir)
	tree, there := send(t, Config{Dir: dir})
	for _, name := range []string{"b", "d/x", "l", "e/z", "e", "none", "f", "dir/in", "dir"} {
		must(t, os.Remove(filepath.Join(there, name)))
	}
	paths{
		"new/deep/file": "755 n", "a": "644 changed", "l": "-> b", ".hidden": "600 h", "f/is/dir": "644 x", "dir": "644 now a file", "void": "dir",
		"node_modules/m": "644 evil", ".git/hooks/x": "755 evil", "dist.log": "644 log",
	}.make(t, there)
	must(t, os.Chmod(filepath.Join(there, "run"), 0o755))
	report, err := tree.Mirror(context.Background(), pack(t, there), "")
	must(t, err)
	want := paths{
		"a": "644 changed", "run": "755 #!", "l": "-> b", "d/y": "644 y", ".gitignore": "644 *.log\n", "x.log": "644 mine", "node_modules/m": "644 m",
		".git/config": "644 c", "new/deep/file": "755 n", ".hidden": "600 h", "f/is/dir": "644 x", "dir": "644 now a file", "void": "dir", "dist.log": "644 log",
	}
	if got := look(t, dir); !maps.Equal(got, want) {
		t.Errorf("here  %v\nwant  %v", got, want)
	}
	text := fmt.Sprintf("%v %v %v %v %v", report.Added, report.Changed, report.Deleted, report.Conflicts, report.Refused)
	if text != "[.hidden dist.log f/is/dir new/deep/file void] [a dir l run] [b d/x dir/in e e/z f none] [] []" {
		t.Error(text)
	}
}

// Nothing that a person changed meanwhile is overwritten or deleted.
func TestConflicts(t *testing.T) {
	start := paths{"a": "644 a", "b": "644 b", "c": "644 c", "l": "-> a", "d/x": "644 x", "run": "644 r", ".gitignore": "644 *.log\n", "x.log": "644 mine"}
	dir := t.TempDir()
	start.make(t, dir)
	tree, there := send(t, Config{Dir: dir})
	must(t, os.RemoveAll(filepath.Join(there, "b")))
	must(t, os.RemoveAll(filepath.Join(there, "l")))
	paths{"a": "644 theirs", "c": "644 theirs", "new": "644 theirs", "same": "644 same", "l": "-> c", "d/x": "644 theirs", "x.log": "644 theirs"}.make(t, there)
	must(t, os.Chmod(filepath.Join(there, "run"), 0o755))
	must(t, os.Remove(filepath.Join(dir, "l")))
	must(t, os.Remove(filepath.Join(dir, "c")))
	must(t, os.RemoveAll(filepath.Join(dir, "d")))
	paths{"a": "644 mine", "b": "644 mine", "new": "644 mine", "same": "644 same", "l": "-> b", "d": "-> elsewhere", "elsewhere/x": "644 x", "run": "644 mine"}.make(t, dir)
	before := look(t, dir)
	aside := filepath.Join(t.TempDir(), "aside")
	report, err := tree.Mirror(context.Background(), pack(t, there), aside)
	must(t, err)
	if got := look(t, dir); !maps.Equal(got, before) {
		t.Errorf("here  %v\nwant  %v", got, before)
	}
	var names []string
	for _, p := range report.Conflicts {
		if p.Path == "x.log" && !strings.Contains(p.Why, "not sent") {
			t.Errorf("a file that was not sent: %s", p.Why)
		}
		names = append(names, p.Path)
	}
	slices.Sort(names)
	if fmt.Sprint(names) != "[a b c d/x l new run x.log]" || len(report.Added)+len(report.Changed)+len(report.Deleted) != 0 {
		t.Errorf("%+v", report)
	}
	want := paths{"a": "600 theirs", "c": "600 theirs", "new": "600 theirs", "d/x": "600 theirs", "run": "600 r", "x.log": "600 theirs"}
	if got := look(t, aside); !maps.Equal(got, want) {
		t.Errorf("aside %v\nwant  %v", got, want)
	}
}

// What a build leaves is not sent, comes back, and is replaced by the next
// build; but not once somebody has changed it here.
func TestBuiltAgain(t *testing.T) {
	dir := t.TempDir()
	paths{".gitignore": "644 dist/\n*.out\n", "a": "644 a"}.make(t, dir)
	known := map[string][32]byte{}
	build := func(text string) Report {
		tree, there := send(t, Config{Dir: dir, Known: known})
		paths{"dist/x": text, "b.out": text}.make(t, there)
		report, err := tree.Mirror(context.Background(), pack(t, there), "")
		must(t, err)
		for name, sum := range report.Sums {
			known[name] = sum
		}
		return report
	}
	if r := build("644 one"); len(r.Added) != 2 || len(r.Sums) != 2 {
		t.Errorf("%+v", r)
	}
	if r := build("644 two"); len(r.Changed) != 2 || len(r.Conflicts) != 0 {
		t.Errorf("%+v", r)
	}
	paths{"b.out": "644 mine"}.make(t, dir)
	if r := build("644 three"); len(r.Changed) != 1 || len(r.Conflicts) != 1 || look(t, dir)["b.out"] != "644 mine" {
		t.Errorf("%+v", r)
	}
}

// TestAttacks: nothing outside the workspace is written, nothing inside it
// through a link, and no hook.
func TestAttacks(t *testing.T) {
	link := func(name, to string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777}
	}
	for name, extra := range map[string][]*tar.Header{
		"absolute":        {file("/tmp/evil", "x")},
		"parent":          {file("../evil", "x")},
		"inner parent":    {file("a/../../evil", "x")},
		"git":             {file(".git/hooks/post-checkout", "x"), file("sub/.GIT/config", "x")},
		"link out":        {link("out", "../outside"), file("out/evil", "x")},
		"absolute link":   {link("out2", "/"), file("out2/tmp/evil", "x")},
		"link in":         {link("in", "kept"), file("in/evil", "x")},
		"link twice":      {link("q", "kept"), link("q", ".."), file("q/evil", "x")},
		"link to file":    {link("kept/file", "../../outside/file"), file("kept/file", "x")},
		"existing link":   {file("escape/evil", "x")},
		"existing link 2": {file("escape", "x"), file("escape/evil", "x")},
		"device":          {{Name: "dev", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, {Name: "fifo", Typeflag: tar.TypeFifo}},
		"hard link":       {{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, {Name: "hard2", Typeflag: tar.TypeLink, Linkname: "../outside/file"}},
		"setuid":          {{Name: "suid", Typeflag: tar.TypeReg, Mode: 0o6755}},
		"dot":             {file(".", "x"), file("a//b", "x"), file("a/./b", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "workspace")
			paths{"workspace/kept/file": "644 kept", "outside/file": "644 outside", "workspace/escape": "-> ../outside"}.make(t, top)
			tree, there := send(t, Config{Dir: dir})
			report, err := tree.Mirror(context.Background(), pack(t, there, extra...), "")
			must(t, err)
			got := look(t, top)
			for path, text := range got {
				if strings.Contains(path, "evil") && name != "existing link 2" && name != "link in" || strings.Contains(strings.ToLower(path), ".git") {
					t.Errorf("%s came into being", path)
				}
				if strings.HasPrefix(text, "6755") || strings.HasPrefix(text, "4") {
					t.Errorf("%s is %s", path, text)
				}
			}
			if got["outside/file"] != "644 outside" || len(got) == 0 {
				t.Errorf("outside has changed: %v, %+v", got, report)
			}
			if _, err := os.Lstat("/tmp/evil"); err == nil {
				t.Error("an absolute name was written")
			}
			if got["workspace/kept/evil"] != "" {
				t.Error("written through a link")
			}
		})
	}
}

// A directory that gave way to a link here is not the one that files were
// deleted from there.
func TestDeletedBehindLink(t *testing.T) {
	dir := t.TempDir()
	paths{"d/x": "644 x", "elsewhere/x": "644 x"}.make(t, dir)
	tree, there := send(t, Config{Dir: dir})
	must(t, os.RemoveAll(filepath.Join(there, "d")))
	must(t, os.RemoveAll(filepath.Join(dir, "d")))
	paths{"d": "-> elsewhere"}.make(t, dir)
	_, err := tree.Mirror(context.Background(), pack(t, there), "")
	must(t, err)
	if got := look(t, dir); got["elsewhere/x"] != "644 x" {
		t.Errorf("a file was deleted through a link: %v", got)
	}
}

// What may not travel may not be endless either.
func TestEndless(t *testing.T) {
	dir := t.TempDir()
	paths{"a": "644 a"}.make(t, dir)
	tree, there := send(t, Config{Dir: dir, MaxFiles: 10, MaxBytes: 1000})
	big := file("node_modules/big", strings.Repeat("x", 100_000))
	if _, err := tree.Mirror(context.Background(), pack(t, there, big), ""); err == nil {
		t.Error("read to its end")
	}
}

// An archive that is cut short anywhere changes nothing.
func TestCutShort(t *testing.T) {
	dir := t.TempDir()
	start := paths{"a": "644 a", "b": "644 b"}
	start.make(t, dir)
	tree, there := send(t, Config{Dir: dir})
	must(t, os.Remove(filepath.Join(there, "a")))
	paths{"b": "644 changed", "c": "644 new"}.make(t, there)
	whole, err := io.ReadAll(pack(t, there))
	must(t, err)
	for n := 0; n < len(whole); n += 7 {
		if _, err := tree.Mirror(context.Background(), bytes.NewReader(whole[:n]), ""); err == nil {
			t.Errorf("%d of %d bytes are taken for an archive", n, len(whole))
		}
		if got := look(t, dir); !maps.Equal(got, start) {
			t.Fatalf("after %d bytes: %v", n, got)
		}
	}
	broken := bytes.Clone(whole)
	broken[len(broken)-6] ^= 1 // gzip's checksum
	if _, err := tree.Mirror(context.Background(), bytes.NewReader(broken), ""); err == nil {
		t.Error("a wrong checksum is taken")
	}
	for _, c := range []Config{{MaxFiles: 1}, {MaxBytes: 5}} {
		tree.config.MaxFiles, tree.config.MaxBytes = max(c.MaxFiles, 1), max(c.MaxBytes, 1)
		if _, err := tree.Mirror(context.Background(), bytes.NewReader(whole), ""); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAnyChanges: whatever was done there is here afterwards, and whatever was
// done here meanwhile is here still.
func TestAnyChanges(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		change(t, random, dir, 12)
		tree, there := send(t, Config{Dir: dir})
		change(t, random, there, 10)
		if seed%2 == 0 {
			_, err := tree.Mirror(context.Background(), pack(t, there), "")
			must(t, err)
			if here, want := look(t, dir), look(t, there); !maps.Equal(here, want) {
				t.Fatalf("seed %d:\nhere  %v\nthere %v", seed, here, want)
			}
			continue
		}
		sent := look(t, dir)
		change(t, random, dir, 5)
		mine, theirs := look(t, dir), look(t, there)
		report, err := tree.Mirror(context.Background(), pack(t, there), "")
		must(t, err)
		for path, text := range look(t, dir) {
			if mine[path] != text && theirs[path] != text && text != "dir" {
				t.Errorf("seed %d: %s is %q, which nobody made: %q here, %q there", seed, path, text, mine[path], theirs[path])
			}
		}
		now := look(t, dir)
		for path, text := range mine {
			if text != "dir" && sent[path] != text && now[path] != text {
				t.Errorf("seed %d: %s was changed here to %q, and is %q: %+v", seed, path, text, now[path], report)
			}
		}
	}
}

// change makes n random changes below dir.
func change(t *testing.T, random *rand.Rand, dir string, n int) {
	t.Helper()
	names := []string{"a", "b", "c"}
	for range n {
		path := dir
		for range 1 + random.IntN(3) {
			path = filepath.Join(path, names[random.IntN(len(names))])
			if info, err := os.Lstat(path); err == nil && !info.IsDir() {
				break
			}
		}
		must(t, os.RemoveAll(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			continue // a file is in the way
		}
		switch random.IntN(5) {
		case 0:
			must(t, os.Symlink(names[random.IntN(len(names))], path))
		case 1:
			must(t, os.Mkdir(path, 0o755))
		case 2:
		default:
			must(t, os.WriteFile(path, fmt.Append(nil, random.IntN(3)), 0o644))
			must(t, os.Chmod(path, []os.FileMode{0o644, 0o755}[random.IntN(2)]))
		}
	}
}

// An archive of nothing deletes nothing, and what is too large is said once, before
// it is read.
func TestArchiveBounds(t *testing.T) {
	dir := t.TempDir()
	paths{"a": "644 a"}.make(t, dir)
	tree, _ := send(t, Config{Dir: dir, MaxBytes: 100})
	var torn *UnreadableError
	if report, err := tree.Mirror(context.Background(), pack(t, ""), ""); !errors.As(err, &torn) || len(report.Deleted) != 0 {
		t.Errorf("nothing: %v, %+v", err, report)
	}
	big := file("./big", strings.Repeat("x", 101))
	if _, err := tree.Mirror(context.Background(), pack(t, "", big), ""); !errors.Is(err, errTooLarge) || errors.As(err, &torn) {
		t.Errorf("too large: %v", err)
	}
	if got := look(t, dir); !maps.Equal(got, paths{"a": "644 a"}) {
		t.Error(got)
	}
}
