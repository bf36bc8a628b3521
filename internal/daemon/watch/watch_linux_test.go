package watch

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountEnv tells the test binary that it is the one in the mount namespace.
const mountEnv = "EGRESSD_TEST_MOUNT"

// TestBindMount watches a file that is mounted alone, as Docker does with -v
// FILE:FILE, from inside a mount namespace of its own.
func TestBindMount(t *testing.T) {
	if os.Getenv(mountEnv) != "" {
		bindMount(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBindMount$", "-test.v")
	cmd.Env = append(os.Environ(), mountEnv+"=1")
	cmd.SysProcAttr = mountNamespace()
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestBindMount")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func bindMount(t *testing.T) {
	dir := t.TempDir()
	outside, inside := filepath.Join(dir, "outside.yaml"), filepath.Join(dir, "inside.yaml")
	write(t, outside, oldText)
	write(t, inside, "")
	must(t, unix.Mount(outside, inside, "", unix.MS_BIND, ""))
	defer func() { _ = unix.Unmount(inside, unix.MNT_DETACH) }()
	var log bytes.Buffer
	w := &watched{t: t, path: inside, calls: make(chan string, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		watcher := Watcher{Paths: []string{inside}, Changed: w.changed, Log: slog.New(slog.NewTextHandler(&log, nil))}
		done <- watcher.Run(ctx)
	}()
	w.until(oldText, 5*time.Second)
	write(t, outside, newText)
	w.until(newText, 5*time.Second)
	// The kernel reports it: no scan finds it.
	src, err := newEvents()
	must(t, err)
	defer src.close()
	(&scanner{paths: []string{inside}, src: src}).scan()
	write(t, outside, newText)
	select {
	case <-src.changes():
	case <-time.After(10 * time.Second):
		t.Error("nobody tells of a file that is mounted alone")
	}
	// A rename outside leaves the mount with the old file. That cannot be read
	// any more, but it can be said.
	write(t, outside+".tmp", "other")
	must(t, os.Rename(outside+".tmp", outside))
	w.next(5 * time.Second)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "mount the directory"); n != 1 {
		t.Errorf("notified %d times: %s", n, &log)
	}
}

// Whatever happens, no descriptor and no watch is left.
func TestNoLeak(t *testing.T) {
	before := descriptors(t)
	for range 20 {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path, oldText)
		ctx, cancel := context.WithCancel(t.Context())
		w := Watcher{Paths: []string{path}, Changed: cancel}
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	n := 0
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range all {
		if target, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.Contains(target, "inotify") {
			n++
		}
	}
	return n
}

// Watches of what no longer matters are taken away: a policy that is swapped for
// years does not use the user's watches up.
func TestWatchesAreBounded(t *testing.T) {
	src, err := newEvents()
	must(t, err)
	defer src.close()
	n := src.(*kernelEvents)
	dir := t.TempDir()
	link := filepath.Join(dir, "policy.yaml")
	l := scanner{paths: []string{link}, src: src}
	for i := range 10 {
		version := filepath.Join(dir, strconv.Itoa(i))
		must(t, os.Mkdir(version, 0o700))
		write(t, filepath.Join(version, "f"), oldText)
		must(t, os.Symlink(filepath.Join(version, "f"), link+".tmp"))
		must(t, os.Rename(link+".tmp", link))
		if _, notified := l.scan(); !notified {
			t.Error("not all watches stand")
		}
	}
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(n.fd))
	must(t, err)
	want := 4 + len(glances{}.trail(dir).dirs) // the parent, dir, dir/9, the file, and the directories above
	if inKernel := strings.Count(string(info), "inotify wd:"); inKernel != want || len(n.byWD) != want {
		t.Errorf("%d watches in the kernel, %d here, want %d", inKernel, len(n.byWD), want)
	}
}

// Names that do not matter wake nobody.
func TestNamesThatMatter(t *testing.T) {
	dir := &mark{dir: true, names: map[string]bool{"f": true}, creating: map[string]bool{}}
	n := &kernelEvents{byWD: map[int]*mark{1: dir}}
	for _, tt := range []struct {
		wd      int
		mask    uint32
		name    string
		matters bool
	}{
		{1, unix.IN_CREATE, "f", true},
		{1, unix.IN_CREATE, "log", false},
		{1, unix.IN_CLOSE_WRITE, "log", false},
		{1, unix.IN_MOVED_TO, "f", true},
		{1, unix.IN_MOVE_SELF, "", true},
		{2, unix.IN_MODIFY, "", false},
	} {
		if got := n.book(tt.wd, tt.mask, tt.name); got != tt.matters {
			t.Errorf("%+v: matters is %v", tt, got)
		}
	}
	if len(dir.creating) > 0 {
		t.Errorf("still being made: %v", dir.creating)
	}
}

// What the kernel could not keep is taken for a change, and nobody for a writer.
func TestOverflow(t *testing.T) {
	n := &kernelEvents{byWD: map[int]*mark{1: {open: true, creating: map[string]bool{"x": true}}}}
	if !n.book(-1, unix.IN_Q_OVERFLOW, "") || n.byWD[1].open || len(n.byWD[1].creating) > 0 {
		t.Error("an overflow changes nothing")
	}
}

// late makes a directory after the way was looked at and before it is watched.
type late struct {
	source
	make func()
}

func (l *late) place(files []string, on way) error {
	if l.make != nil {
		l.make()
		l.make = nil
	}
	return l.source.place(files, on)
}

// A directory that comes between the look and the watch is watched all the same:
// else the file in it would be found by the slow scan only.
func TestDirectoryComesMeanwhile(t *testing.T) {
	src, err := newEvents()
	must(t, err)
	defer src.close()
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "policy.yaml")
	l := scanner{paths: []string{path}, src: &late{src, func() { must(t, os.MkdirAll(dir, 0o700)) }}, log: slog.New(slog.DiscardHandler)}
	l.scan()
	for len(src.changes()) > 0 {
		<-src.changes()
	}
	if n := src.(*kernelEvents); n.byPath[dir] == nil {
		t.Fatal("the directory of the file is not watched")
	}
	write(t, path, newText)
	select {
	case <-src.changes():
	case <-time.After(10 * time.Second):
		t.Error("nobody tells of the file")
	}
}

// On a file system that others may change too the kernel's word is not enough.
func TestForeignFileSystem(t *testing.T) {
	src, err := newEvents()
	must(t, err)
	defer src.close()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	write(t, path, oldText)
	var log bytes.Buffer
	l := scanner{paths: []string{path}, src: src, log: slog.New(slog.NewTextHandler(&log, nil))}
	on := func(kind int64, want bool) {
		t.Helper()
		src.(*kernelEvents).statfs = func(_ string, st *unix.Statfs_t) error { st.Type = kind; return nil } //nolint:unconvert // 32 bits wide on 386
		if _, notified := l.scan(); notified != want {
			t.Errorf("type %#x: notified is %v", kind, notified)
		}
	}
	on(unix.NFS_SUPER_MAGIC, false)
	on(unix.FUSE_SUPER_MAGIC, false)
	if text := log.String(); strings.Count(text, "found by polling") != 1 || !strings.Contains(text, "others may change (type 0x6969)") {
		t.Errorf("logged: %s", text)
	}
	on(unix.EXT4_SUPER_MAGIC, true)
	if !strings.Contains(log.String(), "by the kernel again") {
		t.Errorf("logged: %s", &log)
	}
}

// TestNoWatchLeft runs a watcher as a user with no inotify watch left: it says so,
// with the setting to raise, and finds changes all the same.
func TestNoWatchLeft(t *testing.T) {
	if os.Getenv(mountEnv) != "" {
		noWatchLeft(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoWatchLeft$", "-test.v")
	cmd.Env = append(os.Environ(), mountEnv+"=1")
	cmd.SysProcAttr = userNamespace()
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestNoWatchLeft")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func noWatchLeft(t *testing.T) {
	const limit = "/proc/sys/user/max_inotify_watches"
	if err := os.WriteFile(limit, []byte("1"), 0o600); err != nil {
		t.Logf("not tried: %v: the limit cannot be set here", err) // a container's /proc/sys is read-only
		return
	}
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, oldText)
	var log bytes.Buffer
	w := &watched{t: t, path: path, calls: make(chan string, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	watcher := Watcher{Paths: []string{path}, Changed: w.changed, Log: slog.New(slog.NewTextHandler(&log, nil))}
	go func() { done <- watcher.Run(ctx) }()
	w.until(oldText, 30*time.Second)
	write(t, path, newText)
	w.until(newText, 30*time.Second)
	cancel()
	must(t, <-done)
	if strings.Count(log.String(), "found by polling") != 1 || !strings.Contains(log.String(), "fs.inotify.max_user_watches") {
		t.Errorf("logged: %s", &log)
	}
}
