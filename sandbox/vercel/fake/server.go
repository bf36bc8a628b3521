// Package fake is a double of the hosted Vercel Sandbox API: an http.Handler with
// its control plane in memory. Tests use it, and so does launch dev, for work
// without a network. A program that uses it calls machine.Agent first thing in
// main, and a test does so in TestMain:
//
//	if machine.Agent(os.Args) {
//		return
//	}
//
// Then:
//
//	double, err := fake.New(fake.Config{})
//	...
//	defer double.Close()
//	ts := httptest.NewServer(double)
//	defer ts.Close()
//	client.BaseURL = ts.URL + "/api"
//
// Its sandboxes run commands through the process tier (see package machine),
// behind this project's own engine, which enforces their network policies.
//
// It shares no type with the client, so that a misreading in one shows in the
// other. It records requests ([Server.Requests]) and fails on demand
// ([Server.Inject]); both are also available over HTTP, below /_double/.
package fake

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/sandbox/vercel/fake/internal/drives"
	"egressd/sandbox/vercel/fake/internal/firewall"
	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

// Config is what a Server is made of. The zero Config makes one that accepts
// every bearer token, whose sandboxes reach nothing but what Hosts names.
type Config struct {
	// Dir holds the disks, in a directory of the Server's own, which Close
	// removes. Under root, every user must be able to pass through it, since
	// sandboxes then run as another user. "": the system's directory for
	// temporary files.
	Dir string

	Token     string // the bearer token; "" accepts every one
	TeamID    string // the team of that token; "" accepts every one
	ProjectID string // the only project there is; "" makes each one that is named

	Images []string // that the project has besides Vercel's own, by name without tag

	// Hide are directories of this machine that sandboxes find empty, such as the
	// user's HOME. /root, /home and /tmp are not this machine's in any case.
	Hide []string

	// Hosts are names that lead to addresses of this machine or another, loopback
	// included, in the place of a look-up.
	Hosts    map[string][]netip.Addr
	Resolver *dnsfilter.Resolver // looks up other names; nil: they do not exist
	Events   event.Sink          // receives the engine's decisions; nil drops them
	RootCAs  *x509.CertPool      // verify origins whose requests are changed; nil: the system's
	TLSPorts []uint16            // where requests are changed besides port 443

	Delays Delays

	HTTP *http.Client // fetches tarball sources; nil: the default one, without a proxy
	Log  *slog.Logger // nil discards
}

// Delays make the double as slow as the hosted service. Zero is none.
type Delays struct {
	Boot     time.Duration // how long a session is pending after create has answered; zero: it answers when it runs
	Stop     time.Duration // how long a session is stopping before it is stopped
	Snapshot time.Duration // how long it is snapshotting
}

// Server is the double. Safe for concurrent use.
type Server struct {
	cfg    Config
	mux    *http.ServeMux
	dir    string
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu        sync.Mutex
	closed    bool
	sandboxes map[key]*box
	sessions  map[string]*session
	snapshots map[string]*snapshot
	drives    *drives.Store
	order     int // counts what was made, so that equal times have an order
	limits    map[string]*window

	wg sync.WaitGroup // sessions, timers and requests under way
	aside
}

// aside is what the hosted service has not.
type aside struct {
	faults faultList
	record recorder
}

// key names a sandbox: names are unique in a project.
type key struct{ project, name string }

// New makes a double with nothing in it. The caller closes it.
func New(cfg Config) (*Server, error) {
	dir, err := os.MkdirTemp(cfg.Dir, "vercel-api-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(dir, 0o711), machine.Reachable(dir)); err != nil { // #nosec: the machines' user passes through
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Transport: &http.Transport{}}
	}
	s := &Server{
		cfg: cfg, dir: dir,
		sandboxes: map[key]*box{}, sessions: map[string]*session{}, snapshots: map[string]*snapshot{}, drives: drives.New(dir), limits: map[string]*window{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.mux = s.routes()
	return s, nil
}

// Close ends every sandbox with all that runs in it, and removes the disks. It
// returns when nothing is left: no process, no request, no file.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	var errs []error
	for _, ses := range s.sessions {
		if ses.disk != nil {
			errs = append(errs, ses.disk.Remove())
		}
	}
	for _, snap := range s.snapshots {
		if snap.disk != nil {
			errs = append(errs, snap.disk.Remove())
		}
	}
	s.cfg.HTTP.CloseIdleConnections()
	return errors.Join(append(errs, s.drives.Close(), os.RemoveAll(s.dir))...)
}

// enter counts something that Close waits for; false: too late.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Add(1)
	}
	return !s.closed
}

// firewallConfig is what every session's network shares.
func (s *Server) firewallConfig() firewall.Config {
	return firewall.Config{
		Hosts: s.cfg.Hosts, Resolver: s.cfg.Resolver, Events: s.cfg.Events, RootCAs: s.cfg.RootCAs, TLSPorts: s.cfg.TLSPorts, Log: s.cfg.Log,
	}
}

// path is a new place below the Server's directory.
func (s *Server) path(id string) string { return filepath.Join(s.dir, id) }

// ServeHTTP answers under / as api.vercel.com does, and under /api/ as
// vercel.com does. A request whose Host is a route's, such as
// sb-abc.vercel.run, goes to the server in that sandbox.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	defer s.wg.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r = r.WithContext(ctx)
	if sub, ok := strings.CutSuffix(hostname(r.Host), routeDomain); ok {
		s.proxyTo(w, r, sub)
		return
	}
	r.URL.Path = "/" + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	switch {
	case strings.HasPrefix(r.URL.Path, sidePath):
		s.serveSide(w, r)
	case strings.HasPrefix(r.URL.Path, terminalPath):
		s.serveTerminal(w, r)
	case r.URL.Path == healthPath:
		w.WriteHeader(http.StatusOK)
	default:
		s.serveAPI(w, r)
	}
}

// everywhere are headers of every answer.
var everywhere = map[string]string{
	"Access-Control-Allow-Headers": "Authorization, Accept, Content-Type",
	"Access-Control-Allow-Methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
	"Access-Control-Allow-Origin":  "*",
	"Cache-Control":                "private, max-age=0, must-revalidate",
	"Server":                       "Vercel",
	"Strict-Transport-Security":    "max-age=63072000",
}

// serveAPI records the request, applies its fault, and answers.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	entry := s.record.begin(r)
	for name, value := range everywhere {
		w.Header().Set(name, value)
	}
	w.Header().Set("X-Vercel-Id", requestID())
	fw := &faultWriter{ResponseWriter: w, fault: s.faults.take(r)}
	defer func() {
		s.record.end(entry, fw.status)
		if p := recover(); p != nil && p != (endOfAnswer{}) {
			panic(p) // a reset, or a bug: net/http closes the connection
		}
	}()
	if done := fw.before(r); done {
		return
	}
	s.countRequest(w, r)
	if err := s.authorize(r); err != nil {
		fw.fail(err)
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		fw.fail(noSuchPath(s.mux, r))
		return
	}
	s.mux.ServeHTTP(fw, r)
	fw.after()
}

// handler answers a request. Its error becomes the answer.
type handler func(w http.ResponseWriter, r *http.Request) error

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"POST /v2/sandboxes":               s.createSandbox,
		"POST /v3/sandboxes":               s.createSandbox,
		"GET /v2/sandboxes":                s.listSandboxes,
		"GET /v2/sandboxes/{name}":         s.getSandbox,
		"PATCH /v2/sandboxes/{name}":       s.patchSandbox,
		"DELETE /v2/sandboxes/{name}":      s.deleteSandbox,
		"POST /v2/sandboxes/{name}/{what}": s.forkOrDrive,

		"GET /v2/sandboxes/sessions":                       s.listSessions,
		"GET /v2/sandboxes/sessions/{sid}":                 s.getSession,
		"POST /v2/sandboxes/sessions/{sid}/stop":           s.stopSession,
		"POST /v2/sandboxes/sessions/{sid}/extend-timeout": s.extendTimeout,
		"POST /v2/sandboxes/sessions/{sid}/network-policy": s.setNetworkPolicy,
		"POST /v2/sandboxes/sessions/{sid}/snapshot":       s.createSnapshot,
		"POST /v2/sandboxes/sessions/{sid}/interactive":    s.interactive,

		"POST /v2/sandboxes/sessions/{sid}/cmd":            s.runCommand,
		"GET /v2/sandboxes/sessions/{sid}/cmd":             s.listCommands,
		"GET /v2/sandboxes/sessions/{sid}/cmd/{cid}":       s.getCommand,
		"GET /v2/sandboxes/sessions/{sid}/cmd/{cid}/logs":  s.commandLogs,
		"POST /v2/sandboxes/sessions/{sid}/cmd/{cid}/kill": s.killCommand,

		"POST /v2/sandboxes/sessions/{sid}/fs/write": s.writeFiles,
		"POST /v2/sandboxes/sessions/{sid}/fs/read":  s.readFile,
		"POST /v2/sandboxes/sessions/{sid}/fs/mkdir": s.mkdir,

		"GET /v2/sandboxes/snapshots":         s.listSnapshots,
		"GET /v2/sandboxes/snapshots/tree":    s.snapshotTree,
		"GET /v2/sandboxes/snapshots/{id}":    s.getSnapshot,
		"DELETE /v2/sandboxes/snapshots/{id}": s.deleteSnapshot,

		"GET /v2/sandboxes/drives":           s.listDrives,
		"DELETE /v2/sandboxes/drives/{name}": s.deleteDrive,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			fw := w.(*faultWriter) //nolint:errcheck,forcetypeassert // serveAPI alone calls it
			if err := h(fw, r); err != nil {
				fw.fail(err)
			}
		})
	}
	return mux
}

// noSuchPath distinguishes a wrong method from a wrong path.
func noSuchPath(mux *http.ServeMux, r *http.Request) error {
	for _, m := range []string{"GET", "POST", "PATCH", "DELETE"} {
		if m == r.Method {
			continue
		}
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := mux.Handler(other); pattern != "" {
			return reply.NewError(http.StatusMethodNotAllowed, "method_not_allowed", fmt.Sprintf("%s is not allowed here.", r.Method))
		}
	}
	return reply.NotFound("The requested resource was not found.")
}
