//go:build linux

package hermetic

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

// probed runs attempts in a worker, some walls left out, and reports how each
// went.
func probed(t *testing.T, b *Backend, names ...string) map[string]string {
	t.Helper()
	o := run(t, b, sandbox.Spec{Argv: []string{"sh", "-c", "probe " + strings.Join(names, " ")}})
	if o.code != 0 || o.failure != nil {
		t.Fatalf("%+v", o)
	}
	got := map[string]string{}
	for line := range strings.Lines(o.out) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[name] = what
	}
	return got
}

// files are the attempts that Landlock stops, the others are the filter's.
var files = []string{"read-passwd", "list-root", "read-proc", "dev-null", "make-in-tmp", "parent-dir"}

// harmless are the attempts that must work.
var harmless = []string{"own-dir", "make-here"}

// Every way out is shut in a worker, and its own directory is open.
func TestWalls(t *testing.T) {
	got := probed(t, &Backend{}, slices.Sorted(maps.Keys(attempts()))...)
	for name, what := range got {
		want := "EPERM"
		switch {
		case slices.Contains(harmless, name):
			want = "done"
		case slices.Contains(files, name):
			want = "EACCES"
		case name == "reserve": // RLIMIT_AS
			want = "ENOMEM"
		case strings.HasPrefix(name, "ioctl"):
			want = "ENOTTY"
		case name == "clone3" || name == "io_uring_setup":
			want = "ENOSYS"
		}
		if what != want {
			t.Errorf("%s: %s, want %s", name, what, want)
		}
	}
	if len(got) != len(attempts()) {
		t.Errorf("%d of %d attempts were made", len(got), len(attempts()))
	}
}

// With the filter out, what Landlock stops is still stopped, sockets to others
// and signals among it; and the filter's attempts are not, so the test above
// would see it if there were none.
func TestLandlockAlone(t *testing.T) {
	got := probed(t, &Backend{hooks: testHooks{skip: []string{"seccomp"}}}, append(slices.Clone(files), "socket", "tcp", "mkfifo", "tgkill", "kill", "memfd_create", "own-dir")...)
	want := map[string]string{"socket": "done", "tcp": "EACCES", "mkfifo": "EACCES", "tgkill": "EPERM", "kill": "EPERM", "memfd_create": "EFAULT", "own-dir": "done"}
	for _, name := range files {
		want[name] = "EACCES"
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// With Landlock out, the filter stops the rest; files are open then.
func TestSeccompAlone(t *testing.T) {
	got := probed(t, &Backend{hooks: testHooks{skip: []string{"landlock"}}}, "read-passwd", "list-root", "socket", "execve", "fork", "kill")
	want := map[string]string{"read-passwd": "done", "list-root": "done", "socket": "EPERM", "execve": "EPERM", "fork": "EPERM", "kill": "EPERM"}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// A worker that came unconfined does not read the script.
func TestUnconfined(t *testing.T) {
	b := &Backend{hooks: testHooks{skip: []string{"landlock at start"}}}
	o := run(t, b, sandbox.Spec{Script: "echo ran"})
	if o.failure == nil || !strings.Contains(o.failure.Error(), "unconfined") || o.out != "" {
		t.Errorf("%+v", o)
	}
}

// With an overlay the kernel, too, keeps the workspace as it is.
func TestOverlayIsReadOnlyToTheKernel(t *testing.T) {
	if got := probed(t, &Backend{Overlay: true}, "make-here", "own-dir"); got["make-here"] != "EACCES" || got["own-dir"] != "done" {
		t.Errorf("%v", got)
	}
}

// Descriptors that the launcher has by accident do not come along.
func TestDescriptors(t *testing.T) {
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	inherit(t, dir)
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	root := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	if o := run(t, &Backend{}, sandbox.Spec{Script: "fds"}); o.out == "" || slices.Contains(strings.Fields(o.out), root) {
		t.Errorf("%+v", o)
	}
	if o := run(t, &Backend{hooks: testHooks{skip: []string{"descriptors"}}}, sandbox.Spec{Script: "fds"}); !slices.Contains(strings.Fields(o.out), root) {
		t.Errorf("the test passes nothing on: %+v", o)
	}
}

// The workspace is what the person chose, but not the machine itself.
func TestWorkspace(t *testing.T) {
	for _, dir := range []string{"/", "/proc", "/proc/self", "/sys", "/dev"} {
		o := run(t, &Backend{}, sandbox.Spec{Script: "echo ran", Dir: dir})
		if o.failure == nil || o.out != "" {
			t.Errorf("%s: %+v", dir, o)
		}
	}
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ here, dir, root, start string }{
		{top, "", top, "/"},
		{top, "sub", top, "/sub"},
		{top, top + "/sub/.", top, "/sub"},
		{top + "/sub", "..", top, "/"},
		{top + "/sub", top, top, "/"},
	} {
		t.Chdir(tt.here)
		w, err := findWorkspace(tt.dir)
		if err != nil || w.root != tt.root || w.dir != tt.start {
			t.Errorf("in %s, %q: %+v, %v", tt.here, tt.dir, w, err)
		}
	}
	if _, err := findWorkspace("missing"); err == nil {
		t.Error("a missing directory is a workspace")
	}
}
