package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Implementation constants: a probe is short.
const (
	headTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	maxHeadBytes   = 8 << 10
	maxConnections = 64
	endTimeout     = time.Second // for answers in flight once Serve ends
)

// Server answers probes and scrapers. Set the fields before Serve. The zero
// Server is alive, never ready, and has no metrics.
type Server struct {
	// Ready reports why the daemon accepts no traffic; a nil error: it does. A nil
	// Ready: it never does. It must answer at once.
	Ready func() error
	// Details are lines about what is in force and what was rejected, for
	// /readyz?verbose. Nil: there are none. It must answer at once.
	Details func() []string
	// Unused are lines about the rules that were never used, for /rules/unused. Nil: 404.
	// It must answer at once.
	Unused func() []string
	// Metrics answers /metrics. Nil: 404.
	Metrics http.Handler
	Log     *slog.Logger // nil discards
}

// Serve answers on ln until ctx ends, closes it, and returns after every
// goroutine it started has exited. The error is nil when ctx ended it.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	local := ln.Addr().Network() == "unix"
	srv := &http.Server{
		Handler:           s.handler(local),
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       headTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeadBytes,
		ConnContext:       remember,

		DisableGeneralOptionsHandler: true, // OPTIONS is refused as every other method
		ErrorLog:                     slog.NewLogLogger(s.log().Handler(), slog.LevelDebug),
	}
	srv.SetKeepAlivesEnabled(false) // a slot is held for one request: idle scrapers cannot starve a probe
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { s.end(srv, ended) })
	err := srv.Serve(limit(ln, maxConnections))
	if !stop() {
		<-ended // Shutdown has closed ln, which ended Serve
	} else {
		_ = srv.Close()
	}
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("admin: %w", err)
}

// end lets answers in flight finish, for a short while.
func (s *Server) end(srv *http.Server, ended chan<- struct{}) {
	defer close(ended)
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close()
	}
}

// handler answers the requests of a listener; local says that it is a unix
// socket.
//
// Threat: a web page in a browser on this machine makes its own name resolve to
// 127.0.0.1 (DNS rebinding) and reads the answers -> requests on the loopback must
// name an address, localhost, or a name that no public DNS serves (a single label,
// .internal, .local, .svc, ...). On any other address the operator has chosen that
// a network may ask, by any name. Left over: every program that can connect can
// ask; the listener's address and egressd capture --protect-port keep off those
// that must not.
func (s *Server) handler(local bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard(r)
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			say(w, http.StatusMethodNotAllowed, "GET and HEAD only")
		case !local && onLoopback(r) && !hostAllowed(r.Host):
			say(w, http.StatusMisdirectedRequest, "this Host is not one of the admin address's: ask by address")
		default:
			s.route(w, r, local || onLoopback(r))
		}
	})
}

const index = `egressd
/healthz  the process is alive
/readyz   it takes traffic, or why not
/metrics  for Prometheus
/rules/unused  rules that have decided nothing since they are in force; on this machine only
`

// route answers; near says that the client is on this machine.
//
// Threat: one tenant of a gateway reads at its admin address which hosts another's
// policy names -> the list of rules is for sockets and the loopback. Left over: the counts
// in /metrics, and /readyz?verbose, which quotes the line of a policy that was rejected.
func (s *Server) route(w http.ResponseWriter, r *http.Request, near bool) {
	switch r.URL.Path {
	case "/":
		say(w, http.StatusOK, strings.TrimSuffix(index, "\n"))
	case "/healthz":
		say(w, http.StatusOK, "ok")
	case "/readyz":
		code, text := http.StatusOK, "ready"
		if err := s.ready(); err != nil {
			code, text = http.StatusServiceUnavailable, "not ready: "+oneLine(err.Error())
		}
		if s.Details != nil && r.URL.Query().Has("verbose") {
			for _, line := range s.Details() {
				text += "\n" + oneLine(line)
			}
		}
		say(w, code, text)
	case "/metrics":
		if s.Metrics == nil {
			say(w, http.StatusNotFound, "no metrics here")
			return
		}
		s.Metrics.ServeHTTP(w, r)
	case "/rules/unused":
		switch {
		case s.Unused == nil:
			say(w, http.StatusNotFound, "no rules here")
		case !near:
			say(w, http.StatusForbidden, "rules are told on this machine only: ask on the loopback, or at a socket (--admin unix:PATH)")
		default:
			text := "every rule has been used"
			if lines := s.Unused(); len(lines) > 0 {
				text = strings.Join(lines, "\n")
			}
			say(w, http.StatusOK, text)
		}
	default:
		say(w, http.StatusNotFound, "no such page: see /")
	}
}

func (s *Server) ready() error {
	if s.Ready == nil {
		return errors.New("nobody has said that it is")
	}
	return s.Ready()
}

func (s *Server) log() *slog.Logger {
	if s.Log != nil {
		return s.Log
	}
	return slog.New(slog.DiscardHandler)
}

// say answers one short text.
func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a client that is gone needs no answer
}

// oneLine makes text safe for one line of a terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
