package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

// replacements are what editors, package managers and log rotation do to a file.
func replacements() map[string]func(work string) error {
	next := func(work string) (string, error) {
		name := filepath.Join(work, "dir", "next")
		return name, os.WriteFile(name, []byte("new\n"), 0o666)
	}
	return map[string]func(work string) error{
		"renamed over": func(work string) error {
			name, err := next(work)
			return errors.Join(err, os.Rename(name, filepath.Join(work, "dir/policy")))
		},
		"removed and made again": func(work string) error {
			name := filepath.Join(work, "dir/policy")
			return errors.Join(os.Remove(name), os.WriteFile(name, []byte("new\n"), 0o666))
		},
		"renamed and made again": func(work string) error {
			name := filepath.Join(work, "dir/policy")
			return errors.Join(os.Rename(name, name+".1"), os.WriteFile(name, []byte("new\n"), 0o666))
		},
		"its directory renamed and made again": func(work string) error {
			dir := filepath.Join(work, "dir")
			return errors.Join(os.Rename(dir, dir+".1"), os.Mkdir(dir, 0o777), os.WriteFile(dir+"/policy", []byte("new\n"), 0o666))
		},
	}
}

// replacing runs a program that waits until its policy is another one, writes it,
// and stays for a time. Meanwhile replace acts on this machine, once the program
// runs, and after the given delay.
func replacing(t *testing.T, b *Backend, stay string, delay time.Duration, replace func(work string) error) (res result, told []Replacement, policy string) {
	t.Helper()
	work := tempDir(t, "/var/tmp")
	path := filepath.Join(work, "dir/policy")
	for _, err := range []error{os.Mkdir(filepath.Dir(path), 0o777), os.WriteFile(path, []byte("old\n"), 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	b.Outside.Replaced = func(r Replacement) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r)
	}
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			for range 2000 {
				if _, err := os.Stat(filepath.Join(work, "running")); err == nil {
					<-time.After(delay) // when it happens is what is tested
					return replace(work)
				}
				time.Sleep(5 * time.Millisecond) // polling: the program tells only by a file
			}
			return errors.New("the program did not start")
		}()
	}()
	const script = `>running; n=0
		until grep -q new dir/policy 2>/dev/null && echo evil 2>/dev/null >dir/policy; do n=$((n+1)); [ $n -lt 200 ] || exit 3; sleep 0.05; done
		sleep $0`
	res = run(t, b, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", script, stay}, Protect: []string{path}})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	return res, told, string(data)
}

// The host replaces the policy while the program runs; the program waits for that
// and writes the new one.
func TestReplacedOutside(t *testing.T) {
	for name, replace := range replacements() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, delay := range []time.Duration{0, 1200 * time.Millisecond} { // before and after inotify is there
				res, told, _ := replacing(t, &Backend{}, "20", delay, replace)
				if !errors.Is(res.err, ErrReplaced) || res.ExitCode != sandbox.ExitLauncher {
					t.Fatalf("after %v: exit %d, %v, %s", delay, res.ExitCode, res.err, res.out)
				}
				if took := res.Ended.Sub(res.Started); took > delay+10*time.Second {
					t.Errorf("the run was ended after %v", took)
				}
				// Where it is gone before it is made again, the run may have ended in between.
				gone := told != nil && told[0].Now == "" && strings.HasSuffix(name, "made again")
				if len(told) != 1 || !told[0].Exposed || told[0].Was == "" || told[0].Now == "" && !gone || told[0].Was == told[0].Now {
					t.Errorf("told: %+v", told)
				}
			}
			res, told, policy := replacing(t, without("replaced"), "0", 0, replace)
			if res.err != nil || res.ExitCode != 0 || policy != "evil\n" || len(told) > 0 {
				t.Errorf("without the layer it was stopped all the same: exit %d, %v, %q, told %v", res.ExitCode, res.err, policy, told)
			}
		})
	}
}

// A program that gets at a protected file all the same, by a way that no mount
// covers, is noticed as well.
func TestReplacedInside(t *testing.T) {
	work := tempDir(t, "/var/tmp")
	path := filepath.Join(work, "policy")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", "echo evil >new && mv new policy"}, Protect: []string{path}}
	if res := run(t, without("protect"), spec); !errors.Is(res.err, ErrReplaced) || res.ExitCode != sandbox.ExitLauncher {
		t.Errorf("exit %d, %v, %s", res.ExitCode, res.err, res.out)
	}
}

// Whoever asked for it keeps the run, and is told.
func TestReplacedAndKept(t *testing.T) {
	b := &Backend{Outside: Outside{KeepOn: true}}
	res, told, policy := replacing(t, b, "0.5", 0, replacements()["renamed over"])
	if res.err != nil || res.ExitCode != 0 || policy != "evil\n" {
		t.Errorf("exit %d, %v, %q", res.ExitCode, res.err, policy)
	}
	if len(told) != 1 || !told[0].Exposed || told[0].Was == told[0].Now {
		t.Errorf("told: %+v", told)
	}
}

// A file that the program cannot write in its new shape either is told of, and the
// run goes on: an upgrade of the launcher in /usr, say.
func TestReplacedOutOfReach(t *testing.T) {
	b := &Backend{ReadOnly: true}
	work := tempDir(t, "/var/tmp")
	path, shown := filepath.Join(work, "policy"), filepath.Join(work, "shown")
	for _, err := range []error{os.Mkdir(shown, 0o777), os.WriteFile(path, nil, 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Binds = []Bind{{Source: shown, Target: "/mnt/shown"}}
	told := make(chan Replacement, 10)
	b.Outside.Replaced = func(r Replacement) {
		told <- r
		if err := os.WriteFile(filepath.Join(shown, "told"), nil, 0o666); err != nil {
			t.Error(err)
		}
	}
	go func() {
		for range 2000 {
			if _, err := os.Stat(filepath.Join(shown, "running")); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond) // polling: the program tells only by a file
		}
		if err := errors.Join(os.WriteFile(path+".new", []byte("new"), 0o666), os.Rename(path+".new", path)); err != nil {
			t.Error(err)
		}
	}()
	const script = `>/mnt/shown/running; n=0; until [ -e /mnt/shown/told ]; do n=$((n+1)); [ $n -lt 200 ] || exit 3; sleep 0.05; done
		! echo evil 2>/dev/null >$0`
	res := run(t, b, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", script, path}, Protect: []string{path}})
	if res.err != nil || res.ExitCode != 0 {
		t.Fatalf("exit %d, %v, %s", res.ExitCode, res.err, res.out)
	}
	if r := <-told; r.Exposed || r.Path != path {
		t.Errorf("told: %+v", r)
	}
}

// A pipe for events: its names lead nowhere inside.
func TestProtectFIFO(t *testing.T) {
	work := tempDir(t, "/var/tmp")
	path := filepath.Join(work, "events")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	forge := func(b *Backend) string {
		if _, err := reader.WriteString("true\n"); err != nil {
			t.Fatal(err)
		}
		run(t, b, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", "echo forged >events; rm -f events; mv events away"}, Protect: []string{path}})
		if err := reader.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, err := reader.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got := forge(&Backend{}); got != "true\n" {
		t.Errorf("the reader got %q", got)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	if got := forge(without("protect", "replaced", "sockets")); got != "true\nforged\n" {
		t.Errorf("without the layer the reader got %q", got)
	}
}

// Records of launch are not there for the program, and it cannot plant any.
func TestHide(t *testing.T) {
	work := tempDir(t, "/var/tmp")
	records := filepath.Join(work, "home/.local/state/egressd")
	plant := func(b *Backend) result {
		if err := os.MkdirAll(records, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(records, "record"), []byte("good\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.Outside.Hide = []string{records}
		const script = `cd home/.local; cat state/egressd/record
			echo evil >state/egressd/record; echo evil >state/egressd/planted
			mv state gone; mkdir -p state/egressd; echo evil >state/egressd/planted
			mv ../.local ../gone && mkdir -p ../.local/state/egressd && echo evil >../.local/state/egressd/planted; true`
		return run(t, b, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", script}})
	}
	res := plant(&Backend{})
	if data, err := os.ReadFile(filepath.Join(records, "record")); string(data) != "good\n" || err != nil {
		t.Errorf("the record is %q, %v: %s", data, err, res.out)
	}
	if _, err := os.Lstat(filepath.Join(records, "planted")); err == nil {
		t.Errorf("a record was planted: %s", res.out)
	}
	plant(without("hidden", "replaced"))
	if _, err := os.Lstat(filepath.Join(records, "planted")); err != nil {
		t.Error("without the layer it was stopped all the same")
	}
}
