package fake

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// running reports whether a process with that word in its command line runs.
func running(t *testing.T, word string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return false
}

// Close ends whatever runs, and every request, at any moment.
func TestClose(t *testing.T) {
	needMachines(t)
	dir, err := os.MkdirTemp("", "double-test")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if os.Geteuid() == 0 {
		if _, err := New(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "chmod o+x") {
			t.Errorf("a directory that is closed: %v", err)
		}
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	defer ts.Close()
	d := &double{Server: s, t: t, url: ts.URL, client: ts.Client()}
	sid := d.create(`{"projectId":"p"}`)
	const word = "3600.00987"
	d.send("POST", sessions+sid+"/cmd", `{"command":"sh","args":["-c","sleep `+word+` & setsid sleep `+word+` & sleep `+word+`"]}`).want(200)
	d.run(sid, "while ! pgrep -f '^sleep "+word+"' >/dev/null; do sleep 0.01; done")
	if !running(t, word) {
		t.Fatal("it does not run")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, _, _, _ = d.try("POST", sessions+sid+"/cmd", `{"command":"sh","args":["-c","echo a; sleep `+word+`"],"wait":true,"logs":true}`)
		})
		wg.Go(func() { _, _, _, _ = d.try("POST", "/v3/sandboxes", `{"projectId":"p"}`) })
	}
	for n := 0; n < 6; n = strings.Count(string(d.send("GET", sessions+sid+"/cmd", nil).body), `"id"`) {
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if running(t, word) {
		t.Error("something runs after Close")
	}
	if left, err := os.ReadDir(s.cfg.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if status, _, _, err := d.try("GET", "/v2/sandboxes?project=p", ""); err != nil || status != 503 {
		t.Errorf("after Close: %d, %v", status, err)
	}
}

// Several sandboxes with several commands each, at once.
func TestAtOnce(t *testing.T) {
	d := newDouble(t, Config{})
	needMachines(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			sid := d.send("POST", "/v3/sandboxes", fmt.Sprintf(`{"projectId":"p","name":"s%d"}`, i)).want(200).text("session", "id")
			var commands sync.WaitGroup
			for j := range 8 {
				commands.Go(func() {
					if out, code := d.run(sid, fmt.Sprintf("echo %d; sleep 0.1; echo %d >&2; exit %d", j, j, j)); code != j || out != fmt.Sprintf("%d\n%d\n", j, j) {
						t.Errorf("got %q, %d", out, code)
					}
				})
			}
			commands.Wait()
			d.send("DELETE", fmt.Sprintf("/v2/sandboxes/s%d?projectId=p", i), nil).want(200)
		})
	}
	wg.Wait()
}

// Many stops, deletes and resumes of one sandbox at once: each gets an answer
// that makes sense, and the sandbox stays whole.
func TestRaces(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","name":"a"}`)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			switch i % 4 {
			case 0:
				d.send("POST", sessions+sid+"/stop", nil).want(200)
			case 1:
				d.send("GET", "/v2/sandboxes/a?projectId=p&resume=true", nil).want(200)
			case 2:
				if g := d.send("POST", sessions+sid+"/snapshot", nil); g.status != 201 && g.status != 410 && g.status != 422 {
					t.Errorf("snapshot: %d %s", g.status, g.body)
				}
			default:
				if g := d.send("POST", sessions+sid+"/cmd", `{"command":"true","wait":true}`); g.status != 200 && g.status != 410 && g.status != 422 {
					t.Errorf("command: %d %s", g.status, g.body)
				}
			}
		})
	}
	wg.Wait()
	again := d.send("GET", "/v2/sandboxes/a?projectId=p&resume=true", nil).want(200).text("session", "id")
	if out, code := d.run(again, "echo ok"); out != "ok\n" || code != 0 {
		t.Errorf("got %q, %d", out, code)
	}
}

// A repository and an archive as sources, from servers on this machine.
func TestSources(t *testing.T) {
	needMachines(t)
	repo := t.TempDir()
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = repo
		cmd.Env = append(os.Environ(), "HOME="+repo, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("git: %v: %s", err, out)
		}
	}
	git("init", "--quiet", "-b", "trunk")
	for i, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(repo, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "f")
		git("commit", "--quiet", "-m", text)
		git("tag", fmt.Sprintf("v%d", i+1))
	}
	git("update-server-info")
	files := http.FileServer(http.Dir(filepath.Join(repo, ".git")))
	var tarball bytes.Buffer
	z := gzip.NewWriter(&tarball)
	w := tar.NewWriter(z)
	_ = w.WriteHeader(&tar.Header{Name: "top/g", Mode: 0o600, Size: 3})
	_, _ = w.Write([]byte("tar"))
	_, _ = w.Close(), z.Close()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case strings.HasPrefix(r.URL.Path, "/private/") && (user != "u" || password != "p"):
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/t.tgz":
			_, _ = w.Write(tarball.Bytes())
		default:
			http.StripPrefix("/private", files).ServeHTTP(w, r)
		}
	}))
	defer ts.Close()
	d := newDouble(t, Config{})
	source := func(fields string) string {
		return `{"projectId":"p","persistent":false,"networkPolicy":{"mode":"deny-all"},"source":{` + strings.ReplaceAll(fields, "HOST", ts.URL) + `}}`
	}
	for fields, want := range map[string]string{
		`"type":"git","url":"HOST/private/","username":"u","password":"p"`:                 "two ubuntu",
		`"type":"git","url":"HOST/private/","username":"u","password":"p","revision":"v1"`: "one ubuntu",
		`"type":"tarball","url":"HOST/t.tgz"`:                                              "tar ubuntu",
	} {
		sid := d.send("POST", "/v3/sandboxes", source(fields)).want(200).text("session", "id")
		if out, _ := d.run(sid, `f=f; test -e top/g && f=top/g; echo $(cat $f) $(stat -c %U $f)`); out != want+"\n" {
			t.Errorf("%s: got %q", fields, out)
		}
	}
	for _, fields := range []string{
		`"type":"git","url":"HOST/private/","username":"u","password":"wrong"`, `"type":"git","url":"HOST/private/","username":"u","password":"p","revision":"none"`,
		`"type":"tarball","url":"HOST/private/x"`,
	} {
		d.send("POST", "/v3/sandboxes", source(fields)).want(400, "bad_request")
	}
	if list := d.send("GET", "/v2/sandboxes?project=p&status=failed", nil).want(200); len(list.at("sandboxes").([]any)) != 0 {
		t.Errorf("left: %s", list.body)
	}
}

// Every error has the one envelope.
func TestErrorEnvelope(t *testing.T) {
	d := newDouble(t, Config{})
	var body map[string]map[string]string
	if err := json.Unmarshal(d.send("GET", "/v2/sandboxes/x?projectId=p", nil).want(404).body, &body); err != nil {
		t.Fatal(err)
	}
	if body["error"]["message"] != "Named sandbox 'x' not found for this project." || len(body) != 1 || len(body["error"]) != 2 {
		t.Errorf("got %v", body)
	}
}
