package fake

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

func TestMain(m *testing.M) {
	if machine.Agent(os.Args) {
		return
	}
	os.Exit(m.Run())
}

// double is a Server behind a listener.
type double struct {
	*Server
	t   *testing.T
	url string

	client *http.Client
}

func newDouble(t *testing.T, cfg Config) *double {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ts.Close()
		if _, err := os.Stat(s.dir); err == nil {
			t.Error("Close left the directory")
		}
	})
	return &double{Server: s, t: t, url: ts.URL, client: ts.Client()}
}

// canRun is the error of the simplest machine on this computer.
var canRun = sync.OnceValue(func() error {
	s, err := New(Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v3/sandboxes", bytes.NewReader([]byte(`{"projectId":"p"}`)))
	r.Header.Set("Authorization", "Bearer t")
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return reply.NewError(w.Code, "", w.Body.String())
	}
	return nil
})

func needMachines(t *testing.T) {
	t.Helper()
	if err := canRun(); err != nil {
		t.Skipf("no sandbox runs on this machine: %v", err)
	}
}

// got is an answer.
type got struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// send makes a request as the SDK does. body is JSON text, or bytes as they are.
func (d *double) send(method, path string, body any, header ...string) got {
	d.t.Helper()
	var data []byte
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
	case []byte:
		data = b
	}
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+"/api"+path, bytes.NewReader(data))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := d.client.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return got{d.t, resp.StatusCode, resp.Header, out}
}

// at reports the value at a path of field names and indices.
func (g got) at(path ...any) any {
	g.t.Helper()
	var v any
	if err := json.Unmarshal(g.body, &v); err != nil {
		g.t.Fatalf("%d: %s: %v", g.status, g.body, err)
	}
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

func (g got) text(path ...any) string {
	g.t.Helper()
	s, _ := g.at(path...).(string)
	return s
}

// want checks the status, and of an error the code.
func (g got) want(status int, code ...string) got {
	g.t.Helper()
	if g.status != status || len(code) > 0 && g.text("error", "code") != code[0] {
		g.t.Fatalf("got %d %s, want %d %v", g.status, g.body, status, code)
	}
	return g
}

// create makes a sandbox and reports its session.
func (d *double) create(body string) string {
	d.t.Helper()
	needMachines(d.t)
	return d.send("POST", "/v3/sandboxes?teamId=team_x", body).want(200).text("session", "id")
}

// run runs a script and reports its output lines joined and its exit code.
func (d *double) run(sid, script string) (out string, code int) {
	d.t.Helper()
	body, err := json.Marshal(map[string]any{
		"command": "sh", "args": []string{"-c", script}, "env": map[string]string{}, "sudo": false, "wait": true, "logs": true,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	g := d.send("POST", "/v2/sandboxes/sessions/"+sid+"/cmd?teamId=team_x", body).want(200)
	return lines(d.t, g.body)
}

// lines takes a stream apart.
func lines(t *testing.T, body []byte) (out string, code int) {
	t.Helper()
	code = -1
	dec := json.NewDecoder(bytes.NewReader(body))
	for dec.More() {
		var l struct {
			Data    any
			Stream  string
			Command *struct{ ExitCode *int }
		}
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		switch text, _ := l.Data.(string); {
		case l.Stream == "error":
			t.Fatalf("error line: %v", l.Data)
		case l.Stream != "":
			out += text
		case l.Command != nil && l.Command.ExitCode != nil:
			code = *l.Command.ExitCode
		}
	}
	return out, code
}
