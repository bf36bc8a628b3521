package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// mute is a service that falls silent: it answers with what is told, and then
// neither goes on nor closes the connection.
type mute struct {
	asked []string
	at    []time.Duration
	began time.Time
	// answer reports the status, kind and text of the n-th answer to that request,
	// and whether it ends then. Status 0: not even that.
	answer func(request string, n int) (status int, kind, text string, ends bool)
	slow   time.Duration // after every few bytes of a body
	deaf   bool          // it does not take bodies, but their first bytes
}

func (m *mute) RoundTrip(r *http.Request) (*http.Response, error) {
	name := r.Method + " " + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api"), "/v2/sandboxes")
	if r.URL.RawQuery != "" && strings.Contains(r.URL.RawQuery, "wait=true") {
		name += " wait"
	}
	n := 0
	for _, a := range m.asked {
		if a == name {
			n++
		}
	}
	m.asked, m.at = append(m.asked, name), append(m.at, time.Since(m.began))
	if t := httptrace.ContextClientTrace(r.Context()); t != nil {
		t.WroteHeaders()
	}
	if r.Body != nil {
		defer r.Body.Close()
		if m.deaf && r.ContentLength < 0 && n == 0 {
			_, _ = r.Body.Read(make([]byte, 1))
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		for part := make([]byte, 32); ; {
			_, err := r.Body.Read(part)
			if err != nil {
				break
			}
			select {
			case <-time.After(m.slow):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
	}
	status, kind, text, ends := m.answer(name, n)
	if status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	out, in := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
	go func() {
		_, _ = io.WriteString(in, text)
		if ends {
			stop()
			_ = in.Close()
		}
	}()
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: out, Request: r}, nil
}

func (m *mute) client() *Client {
	m.began = time.Now()
	return &Client{HTTP: &http.Client{Transport: m}, Token: token, TeamID: "team_x", ProjectID: "prj_x", random: func() float64 { return 0.5 }}
}

const (
	lineKind = "application/x-ndjson"
	jsonKind = "application/json"
	fileKind = "application/octet-stream"
)

// A stream that falls silent is gone on with when the program has ended, and
// waited for as long as it runs.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mute{answer: func(request string, n int) (int, string, string, bool) {
			switch request {
			case "POST /sessions/s/cmd":
				return 200, lineKind, begun + outLine("one\n"), false
			case "GET /sessions/s/cmd/cmd_c":
				if n < 3 {
					return 200, jsonKind, `{"command":{"id":"cmd_c","exitCode":null}}`, true
				}
				return 200, jsonKind, `{"command":{"id":"cmd_c","exitCode":3}}`, true
			case "GET /sessions/s/cmd/cmd_c/logs":
				return 200, lineKind, outLine("one\n") + outLine("two\n"), true
			}
			return 500, jsonKind, "{}", true
		}}
		var out string
		k, err := m.client().Run(t.Context(), "s", CommandRequest{Command: "x"}, nil, func(_ string, b []byte) error { out += string(b); return nil })
		if err != nil || int(*k.ExitCode) != 3 || out != "one\ntwo\n" {
			t.Errorf("%+v %v %q", k, err, out)
		}
		if took := time.Since(m.began); took != 4*quietTime {
			t.Errorf("took %v, asked %v at %v", took, m.asked, m.at)
		}
	})
}

// Every call to a service that says nothing, or nothing more, ends. The machine's
// limits: minutes.
func TestSilentService(t *testing.T) {
	file := File{Path: "/a", Size: 3, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}
	files := func() iter.Seq[File] { return slices.Values([]File{file}) }
	calls := map[string]func(ctx context.Context, c *Client) error{
		"run": func(ctx context.Context, c *Client) error {
			_, err := c.Run(ctx, "s", CommandRequest{Command: "x"}, nil, nil)
			return err
		},
		"start": func(ctx context.Context, c *Client) error {
			_, err := c.Start(ctx, "s", CommandRequest{Command: "x"})
			return err
		},
		"wait":   func(ctx context.Context, c *Client) error { _, err := c.Wait(ctx, "s", "cmd_c"); return err },
		"logs":   func(ctx context.Context, c *Client) error { return c.Logs(ctx, "s", "cmd_c", nil) },
		"write":  func(ctx context.Context, c *Client) error { return c.WriteFiles(ctx, "s", files(), nil) },
		"mkdir":  func(ctx context.Context, c *Client) error { return c.MakeDir(ctx, "s", "a", "", true) },
		"create": func(ctx context.Context, c *Client) error { _, err := c.Create(ctx, CreateRequest{}); return err },
		"stop":   func(ctx context.Context, c *Client) error { _, err := c.Stop(ctx, "s"); return err },
		"read": func(ctx context.Context, c *Client) error {
			f, err := c.ReadFile(ctx, "s", "a", "")
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.ReadAll(f)
			return err
		},
	}
	begins := map[string]string{"run": lineKind, "logs": lineKind, "read": fileKind}
	texts := map[string]string{"run": begun, "logs": outLine("x"), "read": "abc"}
	for name, do := range calls {
		for _, when := range []string{"from the start", "in the middle", "while it is sent"} {
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := &mute{deaf: when == "while it is sent", answer: func(request string, _ int) (int, string, string, bool) {
						if when == "from the start" || strings.HasSuffix(request, "/cmd/cmd_c") {
							return 0, "", "", false
						}
						if kind := begins[name]; kind != "" {
							return 200, kind, texts[name], false
						}
						return 200, jsonKind, `{"comm`, false
					}}
					err := do(t.Context(), m.client())
					if err == nil || !strings.Contains(err.Error(), "nothing came from the service for ") || errors.Is(err, context.Canceled) {
						t.Errorf("%v", err)
					}
					most := 12 * time.Minute
					if name == "stop" {
						most = 3*slowTimeout + time.Minute
					}
					if took := time.Since(m.began); took > most {
						t.Errorf("took %v, asked %v at %v", took, m.asked, m.at)
					}
				})
			})
		}
	}
}

// One silent connection does not use up the time of the next.
func TestSilentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mute{answer: func(_ string, n int) (int, string, string, bool) {
			return []int{0, 200}[min(n, 1)], jsonKind, `{}`, true
		}}
		c := m.client()
		if _, err := c.Commands(t.Context(), "s"); err != nil || time.Since(m.began) > quickTimeout+time.Second {
			t.Errorf("%v after %v", err, time.Since(m.began))
		}
		m.asked, m.began = nil, time.Now()
		ctx, done := context.WithTimeout(t.Context(), 15*time.Second) // as when a run is cleaned up
		defer done()
		if _, err := c.Stop(ctx, "s"); err != nil || fmt.Sprint(m.asked) != "[POST /sessions/s/stop POST /sessions/s/stop]" {
			t.Errorf("%v, asked %v", err, m.asked)
		}
		m.asked, m.deaf = nil, true
		file := File{Path: "/a", Size: 3, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}
		if err := c.WriteFiles(t.Context(), "s", slices.Values([]File{file}), nil); err != nil || len(m.asked) != 2 {
			t.Errorf("%v, asked %v", err, m.asked)
		}
	})
}

// Files that travel slowly travel: only a silence has a limit.
func TestSlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mute{slow: unpackTime - time.Second, answer: func(string, int) (int, string, string, bool) { return 200, jsonKind, `{}`, true }}
		file := File{Path: "/a", Size: 3, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}
		err := m.client().WriteFiles(t.Context(), "s", slices.Values([]File{file}), nil)
		if took := time.Since(m.began); err != nil || len(m.asked) != 1 || took < 2*unpackTime {
			t.Errorf("%v, asked %v, %v", err, m.asked, took)
		}
	})
}

// A reader that takes its time is not a service that is silent.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mute{answer: func(string, int) (int, string, string, bool) { return 200, fileKind, "abc", true }}
		f, err := m.client().ReadFile(t.Context(), "s", "a", "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := f.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		text, err := io.ReadAll(f)
		if string(text) != "bc" || err != nil || f.Close() != nil {
			t.Errorf("%q %v", text, err)
		}
	})
}
