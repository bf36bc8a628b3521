package vercel

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
	"egressd/sandbox/vercel/fake/machine"
	"egressd/sandbox/vercel/network"
)

func TestMain(m *testing.M) {
	if machine.Agent(os.Args) {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		probe(os.Args[2:])
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil { // they wait more than they work
		panic(err)
	}
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	if code == 0 {
		if left := goroutines(); left != "" {
			fmt.Println("goroutines of this package are left:\n" + left)
			code = 1
		}
	}
	os.Exit(code)
}

// goroutines reports those that run code of this package, when they do not end.
func goroutines() string {
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var b strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
		others := strings.NewReplacer("egressd/sandbox/vercel.TestMain", "", "egressd/sandbox/vercel.goroutines", "").Replace(b.String())
		if !strings.Contains(others, "egressd/sandbox/vercel.") && !strings.Contains(others, "egressd/sandbox/vercel/api.") {
			return ""
		}
		select {
		case <-deadline:
			return b.String()
		case <-tick.C:
		}
	}
}

// Words that must not be where they do not belong.
const (
	token      = "tok-5e5f1c7b2a"
	envValue   = "env-91ab77c0de"
	realSecret = "sec-d00df00d42"
)

// world is a double, a workspace, and a run's surroundings.
type world struct {
	*testing.T
	api    *fake.Server
	client *api.Client
	dir    string // the workspace
	back   Backend

	before func(n int, r *http.Request) // is shown the n-th request, from 1

	fetched atomic.Int64 // bytes of files that were read there

	mu       sync.Mutex
	asked    int
	said     []string
	changes  []Changes
	events   []eventtest.Line
	out, err *os.File
}

var canRun = sync.OnceValue(func() error {
	s, err := fake.New(fake.Config{})
	if err != nil {
		return err
	}
	ts := httptest.NewServer(s)
	defer ts.Close()
	c := &api.Client{BaseURL: ts.URL + "/api", Token: "t", ProjectID: "p"}
	defer c.Close()
	_, err = c.Create(context.Background(), api.CreateRequest{Name: "probe"})
	_ = s.Close()
	return err
})

func newWorld(t *testing.T, cfg fake.Config) *world {
	t.Helper()
	if err := canRun(); err != nil {
		t.Skipf("no sandbox runs on this machine: %v", err)
	}
	cfg.Token, cfg.TeamID, cfg.ProjectID = token, "team_t", "prj_t"
	s, err := fake.New(cfg)
	must(t, err)
	w := &world{T: t, api: s, dir: t.TempDir()}
	ts := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked++
		n, before := w.asked, w.before
		w.mu.Unlock()
		if before != nil {
			before(n, r)
		}
		if strings.HasSuffix(r.URL.Path, "/fs/read") {
			rw = &counted{rw, &w.fetched}
		}
		s.ServeHTTP(rw, r)
	}))
	c := &api.Client{BaseURL: ts.URL + "/api", Token: token, TeamID: "team_t", ProjectID: "prj_t"}
	w.client = c
	t.Cleanup(func() {
		c.Close()
		must(t, s.Close())
		ts.CloseClientConnections()
		ts.Close()
	})
	w.out, w.err = w.file("out"), w.file("err")
	w.back = Backend{
		Client: c, Events: (*sink)(w),
		Changed: func(c Changes) { w.changes = append(w.changes, c) },
	}
	w.back.Session = "S" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return w
}

// counted counts an answer's bytes.
type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// sink takes events.
type sink world

func (s *sink) Emit(e event.Event) error {
	s.events = append(s.events, eventtest.Of(e))
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) file(name string) *os.File {
	f, err := os.Create(filepath.Join(w.TempDir(), name))
	must(w.T, err)
	w.Cleanup(func() { f.Close() })
	return f
}

// read is what f holds; it is empty afterwards.
func (w *world) read(f *os.File) string {
	_, err := f.Seek(0, io.SeekStart)
	must(w.T, err)
	data, err := io.ReadAll(f)
	must(w.T, err)
	must(w.T, f.Truncate(0))
	_, err = f.Seek(0, io.SeekStart)
	must(w.T, err)
	return string(data)
}

// files makes files of the workspace: name, content.
func (w *world) files(pairs ...string) {
	w.Helper()
	for i := 0; i < len(pairs); i += 2 {
		name := filepath.Join(w.dir, pairs[i])
		must(w.T, os.MkdirAll(filepath.Dir(name), 0o755))
		must(w.T, os.WriteFile(name, []byte(pairs[i+1]), 0o644))
	}
}

// has checks a file of the workspace; "-" is none.
func (w *world) has(name, want string) {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if os.IsNotExist(err) {
		data = []byte("-")
	} else if err != nil {
		w.Error(err)
	}
	if string(data) != want {
		w.Errorf("%s holds %q, want %q", name, data, want)
	}
}

func (w *world) spec(script string) sandbox.Spec {
	return sandbox.Spec{Argv: []string{"sh", "-c", script}, Dir: w.dir, Stdout: w.out, Stderr: w.err, Notes: w.note}
}

func (w *world) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// run runs a script.
func (w *world) run(script string) (sandbox.Result, error) {
	return w.back.Run(w.Context(), w.spec(script))
}

// ok runs a script that ends with code.
func (w *world) ok(code int, script string) {
	w.Helper()
	if res, err := w.run(script); err != nil || res.ExitCode != code {
		w.Fatalf("exit code %d, %v, want %d\n%s\n%s", res.ExitCode, err, code, w.said, w.read(w.err))
	}
}

// watch lets f see the requests from now on; nil: nobody does.
func (w *world) watch(f func(n int, r *http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.before = 0, f
}

// fault lets something go wrong, see fake.ParseFault.
func (w *world) fault(texts ...string) {
	w.Helper()
	for _, text := range texts {
		f, err := fake.ParseFault(text)
		must(w.T, err)
		must(w.T, w.api.Inject(f))
	}
}

// calls lists what the double was asked, without ids, and forgets it.
func (w *world) calls() []string {
	var list []string
	for _, r := range w.api.Requests() {
		name := r.Method + " " + strings.TrimPrefix(r.Path, "/api")
		if at, ok := strings.CutPrefix(name, "POST /v2/sandboxes/sessions/"); ok {
			_, at, _ = strings.Cut(at, "/")
			name = at
			var b struct {
				Command string
				Args    []string
			}
			if at == "cmd" && json.Unmarshal(r.Body, &b) == nil {
				name += " " + b.Command
			}
		}
		list = append(list, name)
	}
	w.api.ForgetRequests()
	return list
}

// clean checks that nothing is left at the double.
func (w *world) clean() {
	w.Helper()
	w.api.ClearFaults()
	w.alone()
	for s, err := range w.client.List(w.Context(), api.ListOptions{}) {
		if err != nil {
			w.Fatal(err)
		}
		w.Errorf("sandbox %s is still listed: %s", s.Name, s.Status)
	}
}

// alone checks that no session runs.
func (w *world) alone() {
	w.Helper()
	for s, err := range w.client.Sessions(w.Context(), api.ListOptions{}) {
		if err != nil {
			w.Fatal(err)
		}
		if !s.Status.Final() {
			w.Errorf("session %s of %s is left %s", s.ID, s.Sandbox, s.Status)
		}
	}
}

// secrets checks that they are only where they belong.
func (w *world) secrets(reqs []fake.Request, heard ...string) {
	w.Helper()
	for _, r := range reqs {
		head := r.Header.Clone()
		if got := head.Get("Authorization"); got != "Bearer "+token {
			w.Errorf("%s %s: Authorization %q", r.Method, r.Path, got)
		}
		head.Del("Authorization")
		rest := fmt.Sprint(r.Path, r.Query, r.Host, head)
		body := string(r.Body)
		var command struct {
			Args []string
			Env  map[string]string
		}
		if strings.HasSuffix(r.Path, "/cmd") && r.Method == "POST" && json.Unmarshal(r.Body, &command) == nil {
			rest += fmt.Sprint(command.Args)
			delete(command.Env, "VALUE")
			rest += fmt.Sprint(command.Env)
			body = ""
		}
		for _, word := range []string{token, envValue, realSecret} {
			policy := word == realSecret && (strings.HasSuffix(r.Path, "/sandboxes") || strings.HasSuffix(r.Path, "/network-policy") || r.Method == "PATCH")
			if strings.Contains(rest, word) || strings.Contains(body, word) && !policy {
				w.Errorf("%s %s holds %s:\n%s\n%s", r.Method, r.Path, word, rest, body)
			}
		}
	}
	events, err := json.Marshal(w.events)
	must(w.T, err)
	for _, text := range slices.Concat(heard, w.said, []string{string(events)}) {
		for _, word := range []string{token, envValue, realSecret} {
			if strings.Contains(text, word) {
				w.Errorf("%s is told: %s", word, text)
			}
		}
	}
}

// secretive is a run with secrets in it.
func (w *world) secretive(script string) sandbox.Spec {
	w.back.Network = &network.Network{
		Names: []string{"api.example.com"}, Headers: map[string]map[string]string{"api.example.com": {"authorization": "Bearer " + realSecret}},
	}
	spec := w.spec(script)
	spec.Env = []string{"VALUE=" + envValue}
	return spec
}
