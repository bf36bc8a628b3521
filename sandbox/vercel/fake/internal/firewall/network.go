// Package firewall enforces the network policies of the API's double. It reads a
// policy as a client sends it, shows it as the API does, and puts it in force
// with this project's own engine:
//
//	p, err := firewall.Parse(raw)
//	...
//	n := firewall.New(cfg, sharedDir)
//	err = n.Set(p)
//
// The process tier serves the doors of a sandbox through [Network.DoorServer].
package firewall

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/gate"
	"egressd/gate/handover"
	"egressd/policy"
	"egressd/proxy"
	"egressd/proxy/ca"
	"egressd/sandbox/process"
)

// caFile holds the certificates, in the directory given to New.
const caFile = "ca.pem"

// caVariables name the file of certificates that programs inside trust.
var caVariables = []string{
	"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT",
	"NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS", "DENO_CERT", "AWS_CA_BUNDLE",
}

// TrustVariables returns the environment that makes programs in the sandbox trust
// the certificates. shared is the directory given to New, as the sandbox sees it.
func TrustVariables(shared string) map[string]string {
	env := make(map[string]string, len(caVariables))
	for _, name := range caVariables {
		env[name] = shared + "/" + caFile
	}
	return env
}

// Config is what every network of one double shares.
type Config struct {
	// Hosts are names that lead to addresses of this machine or another, loopback
	// included, in the place of a look-up.
	Hosts    map[string][]netip.Addr
	Resolver *dnsfilter.Resolver // looks up other names; nil: they do not exist
	Events   event.Sink          // receives the engine's decisions; nil drops them
	RootCAs  *x509.CertPool      // verify origins whose requests are changed; nil: the system's
	TLSPorts []uint16            // where requests are changed besides port 443
	Log      *slog.Logger        // must not be nil
}

// Network is the network of one sandbox: a front that serves the sandbox's doors,
// and behind it a gate for the policy in force. A new policy is a new gate; the
// connections of the old one are closed. Safe for concurrent use once DoorServer
// has been called.
type Network struct {
	cfg       Config
	dir       string // where the sandbox finds its certificates
	authority *ca.Authority
	front     *gate.Gate

	current atomic.Pointer[gate.Gate] // read without mu: connections that Set waits for ask for it

	mu     sync.Mutex
	retire context.CancelFunc // ends current's connections, and waits for them
	old    []*gate.Gate       // for what they carried
	ctx    context.Context    // of the doors; nil: not open yet, or closed again
	wg     sync.WaitGroup
}

// New returns a network without a policy: call Set before the sandbox starts. dir
// is a directory of this machine that the sandbox can read; the certificates go
// there.
func New(cfg Config, dir string) *Network {
	return &Network{cfg: cfg, dir: dir, authority: new(ca.Authority), retire: func() {}}
}

// Set puts p in force and ends the connections that the policy before it let
// through. The error is a *reply.Error for a policy that cannot be enforced; the
// policy before it then stays.
func (n *Network) Set(p *Policy) error {
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

// run puts g to work. The caller holds n.mu.
func (n *Network) run(g *gate.Gate) {
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

// gate makes the engine of p, and makes the sandbox trust what it signs. The
// caller holds n.mu.
func (n *Network) gate(p *Policy) (*gate.Gate, error) {
	compiled, err := n.cfg.compile(p)
	if err != nil {
		return nil, err
	}
	if err := n.trust(compiled.Intercepted()); err != nil {
		return nil, err
	}
	cur := new(policy.Current)
	cur.Store(compiled)
	config := gate.Config{
		Policy: cur, Resolver: n.cfg.Resolver, Events: n.cfg.events(), Log: n.cfg.Log,
		Identity:     gate.Identity{Isolation: "vercel-api"},
		Interception: gate.Interception{CA: n.authority, RootCAs: n.cfg.RootCAs, Rewrite: p.rewrite},
	}
	if p.asks() {
		config.Ask = func(ctx context.Context, r policy.Request, _ policy.Decision) bool { return n.cfg.admits(ctx, p, r) }
	}
	return gate.New(config)
}

// trust makes certificates for hosts and writes them where the sandbox reads them.
func (n *Network) trust(hosts []string) error {
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

// DoorServer makes the front, for process.Backend.DoorServer.
func (n *Network) DoorServer(context.Context, []netip.AddrPort) (process.DoorServer, error) {
	front, err := gate.New(gate.Config{
		Log: n.cfg.Log, Events: n.cfg.events(),
		Interception: gate.Interception{CA: n.authority}, Shared: gate.Shared{Route: n.route},
	})
	n.front = front
	return n, err
}

func (n *Network) route(proxy.Client) *gate.Gate { return n.current.Load() }

// Bundle reports nil: the sandbox reads its certificates from its shared
// directory, where they can change.
func (n *Network) Bundle() []byte { return nil }

// Open serves the doors until ctx ends.
func (n *Network) Open(ctx context.Context, wg *sync.WaitGroup, sockets handover.Sockets) error {
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

// Bytes reports how many bytes the sandbox received and sent, under all policies
// so far.
func (n *Network) Bytes() (in, out int64) {
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

// rewrite sets the headers of the first rule that matches a request about to
// leave.
func (p *Policy) rewrite(host string, r *http.Request) {
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
