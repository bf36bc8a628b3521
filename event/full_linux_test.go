package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inOwnMounts runs the test that calls it again in a mount namespace of its
// own, as root or as anybody, and reports true in there.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	const mark = "EGRESSD_TEST_OWN_MOUNTS"
	if os.Getenv(mark) != "" {
		return true
	}
	again := func(attr *syscall.SysProcAttr) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), mark+"=1"), attr
		return cmd.CombinedOutput()
	}
	root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	out, err := again(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: root, GidMappings: group})
	if err != nil && len(out) == 0 { // no user namespaces here: root needs none
		out, err = again(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS})
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// A disk fills up under many writers: every Emit that did not fail is on it,
// nothing else is, no line is cut; when there is room again, the Writer goes on
// by itself, and so does the next process.
func TestDiskFillsUp(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH) //nolint:errcheck // the namespace goes anyway
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "e.jsonl")
	if err := os.WriteFile(ballast, make([]byte, 32<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &Writer{W: openForTest(t, path)}
	kept := fill(t, w, "before", 400)
	if got := len(numbers(t, readForTest(t, path))); got != len(kept) || got == 400 {
		t.Fatalf("%d lines are on the full disk, %d were reported", got, len(kept))
	}
	if err := w.Emit(Event{Body: asked(strings.Repeat("x", 500))}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if data := readForTest(t, path); data[len(data)-1] != '\n' {
		t.Errorf("half a line stays: %q", data[len(data)-40:])
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, fill(t, w, "after", 20)...)
	if len(numbers(t, readForTest(t, path))) != len(kept) {
		t.Error("lines are missing")
	}
	wantNoGaps(t, numbers(t, readForTest(t, path)), len(kept))
	data := readForTest(t, path)
	for _, host := range kept {
		if !bytes.Contains(data, []byte(`"`+host+`"`)) {
			t.Errorf("%s was reported to be on record and is not", host)
		}
	}
	rotateOnAFullDisk(t, w, path, ballast, len(kept))
}

func rotateOnAFullDisk(t *testing.T, w *Writer, path, ballast string, kept int) {
	t.Helper()
	if err := os.WriteFile(ballast, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fillUp(t, ballast)
	kept += len(fill(t, w, "slack", 80)) // the file's last page has room
	if err := w.Emit(Event{Body: asked(strings.Repeat("x", 500))}); err == nil {
		t.Fatal("the disk is not full")
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	old, err := w.Reopen(openForTest(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old.(*os.File).Close(), os.Remove(ballast), w.Emit(Event{Body: asked("")})); err != nil {
		t.Fatal(err)
	}
	both := append(readForTest(t, path+".1"), readForTest(t, path)...)
	wantNoGaps(t, numbers(t, both), kept+1)
}

// fill emits n events at once from several goroutines and reports the hosts of
// those that are on record.
func fill(t *testing.T, w *Writer, word string, n int) (kept []string) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range n / 4 {
				host := fmt.Sprintf("%s-%d-%d", word, g, i)
				err := w.Emit(Event{Body: &Connection{Method: host, Path: strings.Repeat("p", 200)}})
				if err == nil {
					mu.Lock()
					kept = append(kept, host)
					mu.Unlock()
				} else if !errors.Is(err, unix.ENOSPC) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return kept
}

// fillUp writes to path until the disk is full.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 1 << 12 {
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return
		}
	}
	t.Fatal(io.ErrShortWrite)
}
