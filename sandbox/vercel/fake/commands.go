package fake

import (
	"context"
	"encoding/json"
	"net/http"
	"syscall"

	"egressd/sandbox/vercel/fake/internal/output"
	"egressd/sandbox/vercel/fake/internal/reply"
)

// ndjson is exactly what clients compare the content type with.
const ndjson = "application/x-ndjson"

func (s *Server) runCommand(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	var b commandBody
	if err := reply.Decode(r, &b); err != nil {
		return err
	}
	// The Python SDK says it in the query as well.
	b.Wait = b.Wait || r.URL.Query().Get("wait") == "true"
	b.Logs = b.Logs || b.Wait && r.URL.Query().Get("logs") == "true"
	if err := b.check(); err != nil {
		return err
	}
	c, err := s.startCommand(ses, &b)
	if err != nil {
		return err
	}
	if !b.Wait {
		return reply.JSON(w, http.StatusOK, answer{Command: c.json()})
	}
	st := newStream(w)
	st.line(answer{Command: c.started0()})
	if b.Logs {
		if !st.logs(r.Context(), c) {
			return nil
		}
	}
	select {
	case <-c.done:
	case <-r.Context().Done():
		st.line(errorLine("sandbox_stream_closed", "The stream was closed."))
		return nil
	}
	if c.exit.Lost {
		st.line(errorLine(errSandboxStopped.Code, errSandboxStopped.Message))
		return nil
	}
	st.line(answer{Command: c.json()})
	return nil
}

// started0 is c as it was when it started: what the first line of a stream
// shows, even of one that has ended since.
func (c *command) started0() *commandJSON {
	return &commandJSON{ID: c.id, Name: c.name, Args: c.args, Cwd: c.cwd, SessionID: c.ses.id, StartedAt: c.started}
}

// logLine is a line of output in a stream; Data is an object in one of stream
// "error".
type logLine struct {
	Data   any    `json:"data"`
	Stream string `json:"stream"`
}

func errorLine(code, message string) logLine {
	return logLine{Stream: "error", Data: map[string]string{"code": code, "message": message}}
}

// stream writes lines as they come.
type stream struct {
	w   http.ResponseWriter
	enc *json.Encoder
	rc  *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", ndjson)
	w.WriteHeader(http.StatusOK)
	st := &stream{w: w, enc: json.NewEncoder(w), rc: http.NewResponseController(w)}
	st.enc.SetEscapeHTML(false)
	st.flush()
	return st
}

func (st *stream) flush() { _ = st.rc.Flush() } // a client that has gone

func (st *stream) line(v any) {
	_ = reply.IgnoreWrite(st.enc.Encode(v))
	st.flush()
}

// logs sends what c writes until it has ended. It reports whether the stream
// goes on.
func (st *stream) logs(ctx context.Context, c *command) bool {
	c.out.Enter()
	defer c.out.Leave()
	for at := int64(0); ; {
		rec, err := c.out.Read(ctx, at)
		switch {
		case err != nil:
			st.line(errorLine("sandbox_stream_closed", "The stream was closed."))
			return false
		case rec.Cut:
			st.line(errorLine("log_limit_exceeded", "The command wrote more than is kept."))
			return false
		case !rec.More:
			return true
		}
		name := "stdout"
		if rec.Stream == output.Stderr {
			name = "stderr"
		}
		st.line(logLine{Data: string(rec.Text), Stream: name})
		at = rec.Next
	}
}

func (s *Server) listCommands(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	history := append([]*command{}, ses.history...)
	s.mu.Unlock()
	list := []*commandJSON{}
	for _, c := range history {
		list = append(list, c.json())
	}
	return reply.JSON(w, http.StatusOK, map[string]any{"commands": list})
}

// command finds the command that a request names.
func (s *Server) command(r *http.Request) (*command, error) {
	ses, err := s.running(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := ses.commands[r.PathValue("cid")]
	if c == nil {
		return nil, reply.NotFound("Command '%s' not found.", r.PathValue("cid"))
	}
	return c, nil
}

func (s *Server) getCommand(w http.ResponseWriter, r *http.Request) error {
	c, err := s.command(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("wait") == "true" {
		select {
		case <-c.done:
		case <-r.Context().Done():
			return errSandboxStopped
		}
		if c.exit.Lost {
			return errSandboxStopped
		}
	}
	return reply.JSON(w, http.StatusOK, answer{Command: c.json()})
}

func (s *Server) commandLogs(w http.ResponseWriter, r *http.Request) error {
	c, err := s.command(r)
	if err != nil {
		return err
	}
	st := newStream(w)
	if st.logs(r.Context(), c) && !c.running() && c.exit.Lost {
		st.line(errorLine(errSandboxStopped.Code, errSandboxStopped.Message))
	}
	return nil
}

func (s *Server) killCommand(w http.ResponseWriter, r *http.Request) error {
	c, err := s.command(r)
	if err != nil {
		return err
	}
	b := struct {
		Signal *int `json:"signal"`
	}{}
	if err := reply.Decode(r, &b); err != nil {
		return err
	}
	sig := syscall.SIGTERM
	if b.Signal != nil {
		if *b.Signal < 1 || *b.Signal > 64 {
			return reply.BadRequest("Invalid request: `signal` should be >= 1 and <= 64.")
		}
		sig = syscall.Signal(*b.Signal)
	}
	shown := c.json()
	if err := c.proc.Signal(r.Context(), sig, false); err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, answer{Command: shown})
}
