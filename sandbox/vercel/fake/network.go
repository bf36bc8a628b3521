package fake

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"egressd/gate"
	"egressd/gate/handover"
	"egressd/policy"
	"egressd/proxy"
	"egressd/proxy/ca"
	"egressd/sandbox/process"
)

// caFile is the machine's certificates, in machine.Shared.
const caFile = "ca.pem"

// caVariables name the certificates that programs inside trust.
var caVariables = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT",
	"NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS", "DENO_CERT", "AWS_CA_BUNDLE",
}

// network is what stands between a machine and everything else: a front that
// has the machine's doors, and behind it a gate for the policy in force. A new
// policy is a new gate; the connections of the old one are closed.
type network struct {
	s         *Server
	dir       string // where the machine finds its certificates
	authority *ca.Authority
	front     *gate.Gate

	current atomic.Pointer[gate.Gate] // read without mu: connections that set waits for ask for it

	mu     sync.Mutex
	retire context.CancelFunc // ends current's connections, and waits for them
	old    []*gate.Gate       // for what they carried
	ctx    context.Context    // of the doors; nil: not open yet, or closed again
	wg     sync.WaitGroup
}

func (s *Server) newNetwork(ses *session) *network {
	return &network{s: s, dir: ses.disk.SharedDir(), authority: new(ca.Authority), retire: func() {}}
}

// set puts p in force.
func (n *network) set(p *netPolicy) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	g, err := n.gate(p)
	if err != nil {
		return err
	}
	before := n.retire
	n.retire = func() {}
	if n.ctx != nil {
		n.run(g)
	}
	if was := n.current.Swap(g); was != nil {
		n.old = append(n.old, was)
	}
	before()
	return nil
}

// run lets g judge. n.mu is held.
func (n *network) run(g *gate.Gate) {
	ctx, cancel := context.WithCancel(n.ctx)
	ended, started := make(chan struct{}), make(chan struct{})
	n.retire = func() {
		cancel()
		<-ended
	}
	n.wg.Go(func() {
		defer close(ended)
		g.Run(ctx, func() { close(started) })
	})
	select {
	case <-started:
	case <-ended:
	}
}

// gate makes the engine of p, and lets the machine trust what it signs. n.mu is
// held.
func (n *network) gate(p *netPolicy) (*gate.Gate, error) {
	compiled, err := n.s.compile(p)
	if err != nil {
		return nil, err
	}
	if err := n.trust(compiled.Intercepted()); err != nil {
		return nil, err
	}
	cur := new(policy.Current)
	cur.Store(compiled)
	c := gate.Config{
		Policy: cur, Resolver: n.s.cfg.Resolver, Events: n.s.events(), Log: n.s.cfg.Log,
		Identity:     gate.Identity{Isolation: "vercel-api"},
		Interception: gate.Interception{CA: n.authority, RootCAs: n.s.cfg.RootCAs, Rewrite: p.rewrite},
	}
	if p.asks() {
		c.Ask = func(ctx context.Context, r policy.Request, _ policy.Decision) bool { return n.s.admits(ctx, p, r) }
	}
	return gate.New(c)
}

// trust makes certificates for hosts, and tells the machine of them.
func (n *network) trust(hosts []string) error {
	path := filepath.Join(n.dir, caFile)
	if len(hosts) > 0 {
		changed, err := n.authority.Extend(hosts)
		if err != nil || !changed {
			return err
		}
	} else if _, err := os.Stat(path); err == nil {
		return nil
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, n.authority.Bundle(gate.SystemRoots()), 0o644); err != nil { // #nosec: certificates
		return err
	}
	return errors.Join(os.Chmod(temp, 0o644), os.Rename(temp, path)) // #nosec: as above
}

// doorServer makes the front, for process.Backend.DoorServer.
func (n *network) doorServer(context.Context, []netip.AddrPort) (process.DoorServer, error) {
	front, err := gate.New(gate.Config{
		Log: n.s.cfg.Log, Events: n.s.events(),
		Interception: gate.Interception{CA: n.authority}, Shared: gate.Shared{Route: n.route},
	})
	n.front = front
	return n, err
}

func (n *network) route(proxy.Client) *gate.Gate { return n.current.Load() }

// Bundle reports nil: the machine has its certificates from its shared
// directory, where they can change.
func (n *network) Bundle() []byte { return nil }

// Open serves the doors until ctx ends.
func (n *network) Open(ctx context.Context, wg *sync.WaitGroup, sockets handover.Sockets) error {
	defer sockets.Close() //nolint:errcheck // the doors are copies
	doors, err := sockets.Doors()
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.ctx = ctx
	n.run(n.current.Load())
	n.mu.Unlock()
	wg.Go(func() {
		_ = n.front.Serve(ctx, doors) // a door that closes early is logged, and refuses
		n.mu.Lock()
		n.ctx = nil
		n.mu.Unlock()
		n.wg.Wait()
	})
	return nil
}

// bytes reports what the machine got and sent.
func (n *network) bytes() (in, out int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range append(slices.Clone(n.old), n.current.Load()) {
		if g != nil {
			st := g.Stats()
			in, out = in+int64(st.BytesIn), out+int64(st.BytesOut) // #nosec: counters
		}
	}
	return in, out
}

// rewrite changes a request that is about to leave as the first of its domain's
// rules says that matches.
func (p *netPolicy) rewrite(host string, r *http.Request) {
	if p == nil {
		return
	}
	for _, d := range p.domains {
		if !covers(d, host) {
			continue
		}
		for _, rule := range p.rules[d] {
			if rule.match.matches(r) {
				for k, v := range rule.headers {
					if http.CanonicalHeaderKey(k) == "Host" {
						r.Host = v
						continue
					}
					r.Header.Set(k, v)
				}
				return
			}
		}
	}
}
