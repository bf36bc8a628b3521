package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox"
)

// layered makes a directory with a file in it and the directories of an overlay.
func layered(t *testing.T) (work, base string) {
	t.Helper()
	work, base = tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp")
	t.Cleanup(func() { os.Chmod(filepath.Join(base, "work/work"), 0o700) }) // overlayfs makes it, with mode 0
	for _, err := range []error{
		os.WriteFile(filepath.Join(work, "kept"), []byte("old\n"), 0o644), os.MkdirAll(filepath.Join(work, "a,b:c\\d/e"), 0o755),
		os.Mkdir(filepath.Join(base, "changes"), 0o755), os.Mkdir(filepath.Join(base, "work"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return work, base
}

// What the program does to its working directory, by whatever name, is not done to
// the one outside.
func TestOverlay(t *testing.T) {
	const script = `set -e; echo new >kept; echo x >plus; mkdir d; echo y >d/e; rm -r a*; chmod 700 .
		cd /; echo more >>"$0/kept"; mv "$0/d" "$0/dd"; ln -s /etc/passwd "$0/link"; cat "$0/kept"`
	work, base := layered(t)
	spec := sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", script, work}}
	res := run(t, &Backend{Outside: Outside{Overlay: base}}, spec)
	if res.err != nil || res.ExitCode != 0 || res.out != "new\nmore\n" {
		t.Fatalf("exit %d, %v, %s", res.ExitCode, res.err, res.out)
	}
	names := func(dir string) (all []string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if path != dir {
				all = append(all, strings.TrimPrefix(path, dir+"/"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := strings.Join(names(work), " "); got != `a,b:c\d a,b:c\d/e kept` {
		t.Errorf("the working directory holds %s", got)
	}
	if data, err := os.ReadFile(filepath.Join(work, "kept")); string(data) != "old\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if got := strings.Join(names(filepath.Join(base, "changes")), " "); got != `a,b:c\d dd dd/e kept link plus` {
		t.Errorf("the layer holds %s", got)
	}
	res = run(t, without("overlay"), spec)
	if data, _ := os.ReadFile(filepath.Join(work, "kept")); res.ExitCode != 0 || string(data) != "new\nmore\n" {
		t.Errorf("without the layer it was stopped all the same: %s, %q", res.out, data)
	}
}

// The program does not get at the layer itself.
func TestOverlayHidden(t *testing.T) {
	work, base := layered(t)
	script := `ls -A "$0"; echo evil >"$0/changes/evil"; echo evil >"$0/evil"; grep -e "$0" /proc/self/mountinfo | grep overlay; true`
	res := run(t, &Backend{Outside: Outside{Overlay: base}}, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", script, base}})
	if strings.Contains(res.out, "work\n") || strings.Contains(res.out, "upperdir") {
		t.Errorf("it sees %s", res.out)
	}
	if _, err := os.Lstat(filepath.Join(base, "changes/evil")); err == nil {
		t.Error("it wrote there")
	}
}

// Where an overlay cannot show the directory as it is, nothing runs.
func TestOverlayRefused(t *testing.T) {
	needNamespaces(t)
	work, base := layered(t)
	for _, tt := range []struct{ dir, overlay, says string }{
		{"/", base, "whole file system"},
		{"/sys", base, "file system of its own"},
		{work, filepath.Join(work, "a,b:c\\d"), "is not apart from it"},
		{filepath.Join(base, "changes"), base, "is not apart from it"},
	} {
		_, err := (&Backend{Outside: Outside{Overlay: tt.overlay}}).Run(t.Context(), sandbox.Spec{Dir: tt.dir, Argv: []string{"/bin/true"}})
		if c := (*sandbox.CapabilityError)(nil); !errors.As(err, &c) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.dir, err)
		}
	}
}
