package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/event"
)

// archived is an archive of a new directory, its open file of 10 bytes, and its log.
func archived(t *testing.T, keep int) (a *archive, open *os.File, log *strings.Builder) {
	t.Helper()
	log = new(strings.Builder)
	a = &archive{
		path: filepath.Join(t.TempDir(), "events.jsonl"), most: 10, keep: keep,
		log: slog.New(slog.NewTextHandler(log, nil)),
	}
	return a, begun(t, a.path, "0123456789"), log
}

func begun(t *testing.T, path, text string) *os.File {
	t.Helper()
	f, err := event.Open(path)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// names lists the directory of the archive.
func (a *archive) names(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(a.path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// replaced puts open away and begins the next file with text.
func (a *archive) replaced(t *testing.T, open io.Writer, text string) io.Writer {
	t.Helper()
	next, err := a.replace(open)
	if err == nil {
		_, err = io.WriteString(next, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.(*os.File).Close() })
	return next
}

// The newest files stay, by number: a clock that jumps back has the newest removed.
func TestArchiveKeeps(t *testing.T) {
	a, open, _ := archived(t, 2)
	ahead := a.path + ".20990101T000000Z-000041" // the clock was ahead then
	other := a.path + ".20200101"                // logrotate's
	for _, name := range []string{ahead, other} {
		begun(t, name, "x")
	}
	out := io.Writer(open)
	for i := range 3 {
		out = a.replaced(t, out, fmt.Sprintf("number %03d", i))
	}
	a.retiring.Wait()
	all, err := a.files()
	if err != nil || len(all) != 2 || all[0].number != 43 || all[1].number != 44 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, f := range all {
		if data, err := os.ReadFile(f.name); err != nil || string(data) != fmt.Sprintf("number %03d", i) {
			t.Errorf("%s: %q, %v", f.name, data, err)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("a file of somebody else was removed")
	}
	if n := len(a.names(t)); n != 4 {
		t.Errorf("%q", a.names(t))
	}
}

// Rotation from outside has moved the file, or put another there, or cut it: nothing is
// renamed that is not the open file.
func TestArchiveBesideLogrotate(t *testing.T) {
	t.Run("moved", func(t *testing.T) {
		a, open, _ := archived(t, 2)
		if err := os.Rename(a.path, a.path+".1"); err != nil {
			t.Fatal(err)
		}
		a.replaced(t, open, "next")
		a.retiring.Wait()
		if got := a.names(t); !slices.Equal(got, []string{"events.jsonl", "events.jsonl.1"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		a, open, _ := archived(t, 2)
		if err := os.Rename(a.path, a.path+".1"); err != nil {
			t.Fatal(err)
		}
		begun(t, a.path, "created by logrotate\n")
		a.replaced(t, open, "next")
		a.retiring.Wait()
		data, err := os.ReadFile(a.path)
		if len(a.names(t)) != 2 || err != nil || string(data) != "created by logrotate\nnext" {
			t.Errorf("%q: %q, %v", a.names(t), data, err)
		}
	})
	t.Run("cut", func(t *testing.T) {
		a, open, _ := archived(t, 2)
		if err := os.Truncate(a.path, 0); err != nil {
			t.Fatal(err)
		}
		if next, err := a.replace(open); next != nil || err != nil || len(a.names(t)) != 1 {
			t.Errorf("%v, %v, %q", next, err, a.names(t))
		}
	})
}

// The directory is gone: that is told, and the open file stays.
func TestArchiveFails(t *testing.T) {
	a, open, log := archived(t, -1)
	if err := os.RemoveAll(filepath.Dir(a.path)); err != nil {
		t.Fatal(err)
	}
	next, err := a.replace(open)
	a.retiring.Wait()
	if next != nil || err == nil || !strings.Contains(log.String(), "cannot be rotated") {
		t.Errorf("%v, %v, %s", next, err, log)
	}
	if _, err := open.WriteString("more"); err != nil {
		t.Error(err)
	}
}
