package vercel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
)

// A sandbox of which nobody heard is found, and deleted.
func TestCreateIsLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		faults []string
		fine   bool
	}{
		"once":            {[]string{"POST /v3/sandboxes reset=after"}, true},
		"cut short":       {[]string{"POST /v3/sandboxes bytes=40 then=end"}, true},
		"refused":         {[]string{"POST /v3/sandboxes status=403"}, false},
		"limited":         {[]string{"POST /v3/sandboxes status=429 retry-after=60 times=-1"}, false},
		"always":          {[]string{"POST /v3/sandboxes reset=after times=-1", "GET /v2/sandboxes/* status=500 times=-1"}, false},
		"a gateway's 502": {[]string{"POST /v3/sandboxes status=502 body=<html> times=-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			w.files("a", "a")
			w.fault(tt.faults...)
			res, err := w.run("cat a")
			if (err == nil) != tt.fine || res.ExitCode != map[bool]int{true: 0, false: exitLauncher}[tt.fine] {
				t.Errorf("%d, %v", res.ExitCode, err)
			}
			w.clean()
		})
	}
}

// A run that is given up while its sandbox is being made waits for it, so that
// it can be deleted.
func TestGivenUpWhileMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.fault("POST /v3/sandboxes delay=300ms")
	ctx, cancel := context.WithCancel(t.Context())
	w.watch(func(int, *http.Request) { cancel() })
	if _, err := w.back.Run(ctx, w.spec("true")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.watch(nil)
	if got := w.calls(); len(got) != 3 || got[1] != "stop" {
		t.Errorf("calls %q", got)
	}
	w.clean()
}

// A token that the service does not know is one request and one error: nothing
// was made, so nothing is deleted, and nobody is warned.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "dev"} {
		w := newWorld(t, fake.Config{})
		w.back.Name = name
		w.client.Token = "wrong"
		var log strings.Builder
		w.back.Log = slog.New(slog.NewTextHandler(&log, nil))
		_, err := w.run("true")
		if !errors.Is(err, fs.ErrPermission) || log.Len() != 0 {
			t.Errorf("%v\n%s", err, &log)
		}
		if calls := w.calls(); len(calls) != 1 {
			t.Errorf("calls %q", calls)
		}
	}
}

// A service that asks for an hour is not asked again in half a second.
func TestLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("a", "a")
	w.fault("POST /v2/sandboxes/sessions/*/fs/read status=429 retry-after=3600 times=-1")
	if _, err := w.run("echo x >>a"); err == nil || !strings.Contains(err.Error(), "429") {
		t.Error(err)
	}
	if calls := strings.Join(w.calls(), " "); strings.Count(calls, "fs/read") != 1 {
		t.Errorf("calls %q", calls)
	}
	w.clean()
}

// A program that begins after its run was given up is known all the same.
func TestGivenUpAtTheStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sig := catch()
	defer sig.stop()
	w := (&run{Backend: &Backend{}, signals: sig}).watch(ctx, cancel)
	<-w.done
	w.started <- "late"
	w.stop()
	if w.id != "late" {
		t.Errorf("the program's id is %q", w.id)
	}
}

// Whenever a run is given up, nothing is left.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 9; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			w.files("a", "a", "b", "b")
			must(t, os.Symlink("a", filepath.Join(w.dir, "link")))
			ctx, cancel := context.WithCancel(t.Context())
			w.watch(func(at int, _ *http.Request) {
				if at == n {
					cancel()
				}
			})
			_, err := w.back.Run(ctx, w.spec("echo x >>a; rm b"))
			if n < 8 && err == nil && !slices.ContainsFunc(w.said, func(s string) bool { return strings.Contains(s, "not brought back") }) {
				t.Error("nobody was told")
			}
			w.watch(nil)
			w.clean()
			if n < 5 {
				w.has("a", "a")
			}
		})
	}
}

// A session that ends in the middle is an error, and no file here suffers.
func TestSandboxEnds(t *testing.T) {
	t.Parallel()
	for i, at := range []string{"fs/write", "cmd skip=0", "cmd skip=1", "cmd skip=2", "fs/read"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			w.files("a", "a", "b", "b")
			w.fault("POST /v2/sandboxes/sessions/*/" + at + " status=410 times=-1")
			res, err := w.run("echo x >>a; rm b")
			if err == nil || !api.IsGone(err) || i < 3 && res.ExitCode != exitLauncher {
				t.Errorf("%d, %v", res.ExitCode, err)
			}
			w.has("a", "a")
			w.has("b", "b")
			w.clean()
		})
	}
}

// A sandbox that ended while the program ran has nothing to bring back.
func TestSandboxEndsEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("a", "a")
	w.fault("POST /v2/sandboxes/sessions/*/cmd skip=1 lines=1 then=error code=sandbox_stopped")
	if _, err := w.run("echo x >a"); err == nil || !strings.Contains(err.Error(), "what it changed is lost") {
		t.Error(err)
	}
	if calls := w.calls(); slices.Contains(calls, "cmd tar") {
		t.Errorf("calls %q", calls)
	}
	w.has("a", "a")
	w.clean()
}

// A sandbox that may yet come into being is looked for more than once.
func TestDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	_, err := w.client.Create(t.Context(), api.CreateRequest{Name: "late"})
	must(t, err)
	w.fault("DELETE /v2/sandboxes/late status=404")
	r := &run{Backend: &w.back, made: made{name: "late", names: []string{"late"}, doubt: true}}
	must(t, r.release(t.Context()))
	w.clean()
}

// A stream that breaks is gone on with, an archive that comes torn is fetched
// again, and errors of cleaning up are nobody's.
func TestMended(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]string{
		"stream reset":   {"POST /v2/sandboxes/sessions/*/cmd skip=1 lines=2 then=reset"},
		"stream ends":    {"POST /v2/sandboxes/sessions/*/cmd skip=1 lines=1 then=end"},
		"stream closed":  {"POST /v2/sandboxes/sessions/*/cmd skip=1 lines=1 then=error code=sandbox_stream_closed"},
		"answer lost":    {"POST /v2/sandboxes/sessions/*/cmd skip=1 reset=after"},
		"mkdir lost":     {"POST /v2/sandboxes/sessions/*/cmd status=500"},
		"mkdir reset":    {"POST /v2/sandboxes/sessions/*/cmd reset=before"},
		"tar reset":      {"POST /v2/sandboxes/sessions/*/cmd skip=2 reset=before"},
		"too early":      {"POST /v2/sandboxes/sessions/*/cmd status=425", "POST /v2/sandboxes/sessions/*/fs/* status=408"},
		"tar lost":       {"POST /v2/sandboxes/sessions/*/cmd skip=2 status=503"},
		"archive torn":   {"POST /v2/sandboxes/sessions/*/fs/read bytes=40 then=end"},
		"archive reset":  {"POST /v2/sandboxes/sessions/*/fs/read bytes=10 then=reset", "POST /v2/sandboxes/sessions/*/fs/read bytes=70 then=reset"},
		"no archive yet": {"POST /v2/sandboxes/sessions/*/fs/read status=500 body=oops"},
		"writing":        {"POST /v2/sandboxes/sessions/*/fs/write status=429 retry-after=1", "POST /v2/sandboxes/sessions/*/fs/write reset=after"},
		"stopping":       {"POST /v2/sandboxes/sessions/*/stop status=500 times=3"},
		"deleting":       {"DELETE /v2/sandboxes/* status=500"},
		"cleaning late":  {"POST /v2/sandboxes/sessions/*/stop status=408 times=2", "DELETE /v2/sandboxes/* status=408 times=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			w.files("a", "a\n", "b", "b")
			w.fault(faults...)
			w.ok(0, "cat a; echo one; echo two >>a; rm b; echo new >c; sleep 0.1; echo three")
			if out := w.read(w.out); out != "a\none\nthree\n" {
				t.Errorf("output %q", out)
			}
			w.has("a", "a\ntwo\n")
			w.has("b", "-")
			w.has("c", "new\n")
			w.clean()
		})
	}
}

// What cannot be brought back is an error, and leaves everything here as it was.
func TestArchiveNeverComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("a", "a")
	w.fault("POST /v2/sandboxes/sessions/*/fs/read bytes=40 then=end times=-1")
	res, err := w.run("echo x >>a")
	if err == nil || res.ExitCode != 0 || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("%d, %v", res.ExitCode, err)
	}
	w.has("a", "a")
	w.clean()
}

// A file that the user there may not read is not one that was deleted.
func TestUnreadableThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("a", "a", "dir/b", "b")
	w.ok(0, "echo x >>a; chmod 0 a dir/b; chmod 0 dir")
	must(t, os.Chmod(filepath.Join(w.dir, "dir/b"), 0o600)) // as unreadable here, now
	w.has("dir/b", "b")
	if c := w.changes; len(c) != 1 || len(c[0].Deleted) != 0 {
		t.Errorf("%+v", c)
	}
	w.clean()
}

// The time limit asks the program to end, then kills it; what it changed comes
// back, and the sandbox is stopped, with whatever the program left running.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		script string
		grace  time.Duration
	}{
		"asked":  {`trap 'echo asked >a; exit 5' TERM; echo ready; sleep 1000 & wait`, time.Minute},
		"killed": {`trap '' TERM; echo asked >a; echo ready; while :; do sleep 0.05; done`, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			var res sandbox.Result
			var err error
			// A busy machine may not get to the program in time: then it gets more.
			for limit := 500 * time.Millisecond; limit < time.Minute; limit *= 4 {
				w = newWorld(t, fake.Config{})
				w.files("a", "a")
				spec := w.spec(one.script)
				spec.Timeout, spec.Grace = limit, one.grace
				res, err = w.back.Run(t.Context(), spec)
				if err != nil || w.read(w.out) != "" {
					break
				}
			}
			if err != nil || res.ExitCode != 124 || !res.TimedOut {
				t.Errorf("%+v, %v", res, err)
			}
			w.has("a", "asked\n")
			calls := w.calls()
			if killed := slices.ContainsFunc(calls, func(s string) bool { return strings.HasSuffix(s, "/kill") }); killed != (name == "killed") || count(calls, "cmd sh") < 2 {
				t.Errorf("calls %q", calls)
			}
			w.clean()
		})
	}
}

// When nobody reads the output any more the program is ended, and what it
// changed comes back.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("a", "a")
	r, closed, err := os.Pipe()
	must(t, err)
	must(t, r.Close())
	defer closed.Close()
	spec := w.spec("trap 'echo x >a; exit' TERM; while echo y; do sleep 0.01; done")
	spec.Stdout, spec.Grace = closed, 300*time.Millisecond
	res, err := w.back.Run(t.Context(), spec)
	if err != nil || res.ExitCode != exitSignal+int(syscall.SIGPIPE) {
		t.Errorf("%+v, %v", res, err)
	}
	w.has("a", "x\n")
	w.clean()
}

// A sandbox that may reach more than it should runs nothing.
func TestWiderPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	r := &run{Backend: &w.back}
	state := `{"sandbox":{"name":"n"},"session":{"id":"sbx_1","status":"running","cwd":"/vercel","networkPolicy":{"mode":"allow-all"}}}`
	must(t, w.api.Inject(fake.Fault{Method: "POST", Path: "/v3/sandboxes", Status: 200, ContentType: "application/json", Body: state}))
	if err := r.acquire(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing runs in it") || !r.session.loose {
		t.Error(err)
	}
	w.calls()
	must(t, r.release(t.Context()))
	if got := w.calls(); len(got) != 2 || got[0] != "stop" {
		t.Errorf("calls %q", got)
	}
}
