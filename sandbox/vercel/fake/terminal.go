package fake

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"path"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/internal/terminal"
	"egressd/sandbox/vercel/fake/machine"
)

// Paths of terminals, and how many tokens of a session nobody need have used.
const (
	terminalPath = "/interactive/"
	healthPath   = "/health" // the service's own command line asks it first
	maxTerminals = 64
)

// interactive answers where a terminal of the session can be had, once.
func (s *Server) interactive(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	if err := reply.Decode(r, &struct{}{}); err != nil {
		return err
	}
	token := rand.Text()
	s.mu.Lock()
	ses.terminals = append(ses.terminals, token)
	if len(ses.terminals) > maxTerminals {
		ses.terminals = ses.terminals[1:]
	}
	s.mu.Unlock()
	scheme := "ws"
	if r.TLS != nil {
		scheme = "wss"
	}
	return reply.JSON(w, http.StatusOK, map[string]string{"url": scheme + "://" + r.Host + terminalPath + ses.id, "token": token})
}

// admitTerminal reports the session that r has a token for; nil: none.
func (s *Server) admitTerminal(r *http.Request) *session {
	given := []byte(r.URL.Query().Get("token"))
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.sessions[strings.TrimPrefix(r.URL.Path, terminalPath)]
	if ses == nil || ses.status != statusRunning {
		return nil
	}
	for i, token := range ses.terminals {
		if subtle.ConstantTimeCompare(given, []byte(token)) == 1 {
			ses.terminals = append(ses.terminals[:i:i], ses.terminals[i+1:]...)
			return ses
		}
	}
	return nil
}

// serveTerminal serves one connection to a terminal.
func (s *Server) serveTerminal(w http.ResponseWriter, r *http.Request) {
	ses := s.admitTerminal(r)
	if ses == nil {
		http.Error(w, "the token is missing, used or wrong, or the session does not run", http.StatusForbidden)
		return
	}
	terminal.Serve(w, r, func(start terminal.Start) (*machine.Process, error) {
		env := map[string]string{}
		for _, kv := range start.Env {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		cwd := ses.cwd
		if start.Cwd != "" {
			cwd = path.Join("/", start.Cwd)
		}
		return ses.m.Exec(s.ctx, machine.Command{
			Argv: append([]string{start.Command}, start.Args...), Dir: cwd, Env: ses.environment(env, false, cwd), Terminal: &start.Size,
		})
	})
}
