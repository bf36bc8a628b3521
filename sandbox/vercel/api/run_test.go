package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var ndjson = map[string]string{"Content-Type": "application/x-ndjson"}

const (
	begun = `{"command":{"id":"cmd_c","name":"sh","args":["-c","x"],"cwd":"/vercel","sessionId":"s","startedAt":1790987499616,"exitCode":null}}` + "\n"
	ended = `{"command":{"id":"cmd_c","name":"sh","args":["-c","x"],"cwd":"/vercel","sessionId":"s","startedAt":1790987499616,"exitCode":3,"durationMs":1007}}` + "\n"
)

func outLine(s string) string { return fmt.Sprintf("{\"data\":%q,\"stream\":\"stdout\"}\n", s) }
func errLine(s string) string { return fmt.Sprintf("{\"data\":%q,\"stream\":\"stderr\"}\n", s) }

// runOf runs a command over the steps and reports what it printed.
func runOf(t *testing.T, ctx context.Context, steps ...step) (s *script, out, errs string, k *Command, err error) {
	t.Helper()
	for i := range steps {
		if steps[i].header == nil && (strings.HasPrefix(steps[i].body, `{"command":{"id":"cmd_c","name"`) || strings.HasPrefix(steps[i].body, `{"data"`) || steps[i].body == "" && steps[i].status == 0) {
			steps[i].header = ndjson
		}
	}
	s, c := newScript(steps...)
	started := 0
	k, err = c.Run(ctx, "s", CommandRequest{Command: "sh", Args: []string{"-c", "x"}}, func(*Command) { started++ }, func(stream string, data []byte) error {
		if stream == "stdout" {
			out += string(data)
		} else {
			errs += string(data)
		}
		return nil
	})
	if err == nil && started != 1 {
		t.Errorf("started was called %d times", started)
	}
	return s, out, errs, k, err
}

// However a stream breaks, the output is there once and the command was started
// once.
func TestRun(t *testing.T) {
	exited := step{body: `{"command":{"id":"cmd_c","exitCode":3}}`}
	running := step{body: `{"command":{"id":"cmd_c","exitCode":null}}`}
	list := func() step {
		return step{body: fmt.Sprintf(`{"commands":[{"id":"cmd_c","name":"sh","args":["-c","x"],"startedAt":%d,"exitCode":null}]}`, time.Now().UnixMilli())}
	}
	all := outLine("out1\n") + errLine("err1\n") + outLine("out2\n")
	for _, tt := range []struct {
		name  string
		steps func() []step
	}{
		{"in one piece", func() []step { return []step{{body: begun + all + ended}} }},
		{"without a newline at the end", func() []step { return []step{{body: begun + all + strings.TrimSpace(ended)}} }},
		{"with lines that say nothing to us", func() []step {
			return []step{{body: begun + "\n{\"ping\":1}\n" + all + `{"stream":"debug","data":{}}` + "\n" + ended}}
		}},
		{"ended after the start", func() []step { return []step{{body: begun}, {body: all}, exited} }},
		{"ended between lines", func() []step { return []step{{body: begun + outLine("out1\n")}, {body: all}, exited} }},
		{"ended within a line", func() []step {
			return []step{{body: begun + outLine("out1\n") + `{"data":"er`}, {body: all}, exited}
		}},
		{"reset", func() []step { return []step{{body: begun + outLine("out1\n") + "<reset>"}, {body: all}, exited} }},
		{"closed by the service", func() []step {
			return []step{{body: begun + `{"stream":"error","data":{"code":"sandbox_stream_closed","message":"x"}}` + "\n"}, {body: all}, exited}
		}},
		{"told in other pieces and order", func() []step {
			return []step{{body: begun + outLine("out1\nou")}, {body: errLine("err") + outLine("o") + outLine("ut1\no") + errLine("1\n") + outLine("ut2\n")}, exited}
		}},
		{"and the logs break, too", func() []step {
			return []step{{body: begun}, {body: outLine("out1\n") + "<reset>"}, {status: 503}, {body: outLine("out1\n") + errLine("er") + "<reset>"}, {body: all}, exited}
		}},
		{"and the logs end early", func() []step {
			return []step{{body: begun}, {body: outLine("out1\n")}, running, running, exited, {body: all}}
		}},
		{"and the logs end within a line", func() []step {
			return []step{{body: begun}, {body: outLine("out1\n") + `{"data":"err1`}, {body: all}, exited}
		}},
		{"and the wait breaks", func() []step {
			return []step{{body: begun}, {body: all}, running, {body: "<reset>"}, exited, {body: all}}
		}},
		{"before the first line", func() []step { return []step{{body: "<reset>", header: ndjson}, list(), {body: all}, exited} }},
		{"before the answer", func() []step { return []step{{err: errReset}, list(), {body: all}, exited} }},
		{"instead of the answer", func() []step { return []step{{status: 504}, list(), {body: all}, exited} }},
		{"failed, and not there", func() []step {
			return []step{{status: 500}, {body: `{}`}, {body: `{}`}, {body: `{"commands":[]}`}, {body: begun + all + ended}}
		}},
		{"refused first", func() []step { return []step{{status: 429}, {body: begun + all + ended}} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, out, errs, k, err := runOf(t, t.Context(), tt.steps()...)
				if err != nil || k == nil || k.ExitCode == nil || *k.ExitCode != 3 {
					t.Fatalf("%+v %v; asked %v", k, err, s.asked)
				}
				if out != "out1\nout2\n" || errs != "err1\n" {
					t.Errorf("stdout %q, stderr %q", out, errs)
				}
				posts := strings.Count(fmt.Sprint(s.asked), "POST")
				if want := 1 + strings.Count(tt.name, "refused") + strings.Count(tt.name, "failed"); posts != want || len(s.steps) != 0 {
					t.Errorf("asked %v; %d steps left", s.asked, len(s.steps))
				}
			})
		})
	}
}

func TestRunFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []step
		code  string
	}{
		{"no such program", []step{{status: 400, body: `{"error":{"code":"executable_not_found","message":"x"}}`}}, CodeExecutableNotFound},
		{"the session is gone", []step{{status: 410, body: `{"error":{"code":"sandbox_stopped","message":"x"}}`}}, CodeSandboxStopped},
		{"the session ends meanwhile", []step{{body: begun + `{"stream":"error","data":{"code":"sandbox_stopped","message":"x"}}` + "\n"}}, CodeSandboxStopped},
		{"and during recovery", []step{{body: begun}, {status: 410, body: `{"error":{"code":"sandbox_stopped","message":"x"}}`}}, CodeSandboxStopped},
		{"not a stream", []step{{body: `{"command":{}}`}}, ""},
		{"a line that is not JSON", []step{{body: begun + "what\n"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _, _, _, err := runOf(t, t.Context(), tt.steps...)
				var e *Error
				if !errors.As(err, &e) || e.Code != tt.code || len(s.steps) != 0 {
					t.Errorf("%v; asked %v", err, s.asked)
				}
			})
		})
	}
}

// Streams that break for ever are given up.
func TestRunGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := []step{{body: begun}}
		for range recoveries + 1 {
			steps = append(steps, step{body: outLine("x") + "<reset>"})
		}
		s, out, _, _, err := runOf(t, t.Context(), steps...)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeStreamEnded || out != "x" || len(s.steps) != 0 {
			t.Errorf("%v, %q, %d steps left", err, out, len(s.steps))
		}
	})
}

func TestRunOutputError(t *testing.T) {
	full := errors.New("disk full")
	_, c := newScript(step{body: begun + outLine("x") + ended, header: ndjson})
	_, err := c.Run(context.Background(), "s", CommandRequest{Command: "x"}, nil, func(string, []byte) error { return full })
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

// Lines have no size, and a stream may be silent for as long as it likes.
func TestLargeLine(t *testing.T) {
	long := strings.Repeat("ab", 3<<20)
	_, c := newScript(step{body: begun + outLine(long) + ended, header: ndjson})
	n := 0
	k, err := c.Run(context.Background(), "s", CommandRequest{Command: "x"}, nil, func(_ string, b []byte) error { n += len(b); return nil })
	if err != nil || *k.ExitCode != 3 || n != len(long) {
		t.Errorf("%v, %d bytes", err, n)
	}
}

// An end from outside is the context's, and starts nothing anew.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	s, c := newScript()
	c.HTTP.Transport = piped{s, r}
	go func() {
		_, _ = io.WriteString(w, begun)
		cancel()
		_ = w.CloseWithError(context.Canceled)
	}()
	_, err := c.Run(ctx, "s", CommandRequest{Command: "x"}, nil, nil)
	if !errors.Is(err, context.Canceled) || len(s.asked) != 1 {
		t.Errorf("%v, asked %v", err, s.asked)
	}
}
