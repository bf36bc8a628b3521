package daemon

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/gate"
	"egressd/internal/daemon/watch"
	"egressd/policy"
)

// isolation is what events of the daemon's own doors say. The daemon does not know
// what surrounds its clients.
const isolation = "sidecar"

// policyGate is one policy and the gate that serves it.
type policyGate struct {
	source   Source
	current  *policy.Current
	inputs   inputs
	resolver *dnsfilter.Resolver
	pins     *dnsfilter.Pins
	volume   volume
	sink     event.Sink
	gate     *gate.Gate
}

// inputs are the files that the last load of a policy read or tried to, list files
// included. Used by the goroutine that loads.
type inputs struct {
	files []string
	sums  map[string][sha256.Size]byte // of those that were read, when the policy is in force
	bytes int                          // that were read
}

func (i *inputs) note(name string) {
	if !slices.Contains(i.files, name) {
		i.files = append(i.files, name)
	}
}

// unchanged reports whether the policy in force was made of exactly what the files
// hold now.
func (i *inputs) unchanged() bool {
	for _, name := range i.files {
		want, known := i.sums[name]
		if now, err := watch.Sum(name); !known || err != nil || now != want {
			return false
		}
	}
	return len(i.files) > 0
}

// candidate is a policy that was read and is not in force yet.
type candidate struct {
	policy    *policy.Policy
	upstreams []dnsfilter.Upstream
	sums      map[string][sha256.Size]byte // of the files it was made of
}

// read reads, compiles and checks a policy. Nothing changes yet.
func (d *daemon) read(n *policyGate) (candidate, error) {
	s := n.source
	n.inputs = inputs{files: slices.Clone(s.Files)}
	sums := make(map[string][sha256.Size]byte)
	p, upstreams, err := s.Compile(&policy.Document{DNS: policy.DNS{Upstreams: d.c.Upstreams}, Upstream: d.c.UpstreamProxy}, Reader{
		ReadFile: func(name string) ([]byte, error) {
			n.inputs.note(name)
			data, err := d.c.ReadFile(name)
			switch {
			case err == nil:
				sums[name] = sha256.Sum256(data)
				n.inputs.bytes += len(data)
				return data, d.c.checkOutputs(name)
			case slices.Contains(s.Files, name):
				return nil, unreadable("--policy "+s.flag(name), err)
			}
			return nil, unreadable("the list "+name, err)
		},
		Before: n.current.Load(),
		Unchanged: func(name string, sum [sha256.Size]byte) bool {
			n.inputs.note(name)
			now, err := watch.Sum(name)
			sums[name] = now
			return err == nil && now == sum
		},
	})
	if err != nil {
		return candidate{}, err
	}
	if len(upstreams) == 0 {
		if upstreams, err = d.systemUpstreams(); err != nil {
			return candidate{}, err
		}
	}
	return candidate{p, upstreams, sums}, errors.Join(d.checkLoop(upstreams), d.checkSecrets(p), d.checkUpstream(p))
}

// Reader is how the files of a policy are read.
type Reader struct {
	ReadFile func(name string) ([]byte, error)

	// Before is the policy in force; nil: none. It shares the list files that have not
	// changed. Unchanged reports whether a list has this SHA-256 still; nil: each is read.
	Before    *policy.Policy
	Unchanged func(name string, sum [sha256.Size]byte) bool
}

// Compile reads and compiles the policy that s describes, with its list files, and
// reports the DNS servers that it names. first stands in front of all; nil: nothing
// does. Errors of ReadFile are reported as they are.
func (s Source) Compile(first *policy.Document, r Reader) (*policy.Policy, []dnsfilter.Upstream, error) {
	docs := []*policy.Document{first, s.Flags}
	for _, name := range s.Files {
		data, err := r.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		doc, err := policy.ParseFile(name, data)
		if err == nil {
			err = doc.ReadListsAgain(r.ReadFile, r.Before, r.Unchanged)
		}
		if err != nil {
			return nil, nil, err
		}
		docs = append(docs, doc)
	}
	p, err := policy.Compile(docs...)
	if err != nil {
		return nil, nil, err
	}
	servers, err := dnsfilter.PolicyUpstreams(p)
	return p, servers, err
}

// flag is the value of --policy that names this file.
func (s Source) flag(file string) string {
	if s.Name == DefaultPolicy {
		return file
	}
	return s.Name + "=" + file
}

// unreadable reports which flag named a file that cannot be read, and what to do.
func unreadable(flag string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err // the flag names the path already
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s: %w (egressd runs as user %d: let that user read it)", flag, err, os.Geteuid())
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s: %w (name the file in it)", flag, err)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// systemUpstreams reads the DNS servers of this machine. Without a resolv.conf
// there are none: names in hosts entries still work.
func (d *daemon) systemUpstreams() ([]dnsfilter.Upstream, error) {
	data, err := d.c.ReadFile("/etc/resolv.conf")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("DNS servers of this machine: %w", err)
	}
	return dnsfilter.SystemUpstreams(data)
}

// checkLoop refuses a DNS server that is this daemon: every lookup would ask the
// daemon itself until it gave up.
func (d *daemon) checkLoop(ups []dnsfilter.Upstream) error {
	for _, u := range ups {
		text := u.String()
		at, err := netip.ParseAddrPort(text[strings.LastIndexAny(text, "/@")+1:])
		if err != nil {
			continue
		}
		for _, own := range d.sockets.ownDNS {
			if at.Port() == own.Port() && (at.Addr() == own.Addr() || own.Addr().IsUnspecified() && at.Addr().IsLoopback()) {
				return fmt.Errorf("the DNS server %s is egressd itself: name another one with --dns-upstream ADDRESS or dns.upstreams", text)
			}
		}
	}
	return nil
}

// checkSecrets reports the secrets of p that have no value.
func (d *daemon) checkSecrets(p *policy.Policy) error {
	var errs []error
	for _, s := range p.Secrets() {
		if d.c.Getenv(s.Env) == "" {
			errs = append(errs, fmt.Errorf("%s: secret %s is not set: give egressd that variable in its environment", s.Pos, s.Env))
		}
	}
	return errors.Join(errs...)
}

// checkUpstream reports what keeps the upstream proxy of p from being used.
func (d *daemon) checkUpstream(p *policy.Policy) error {
	u := p.Upstream()
	if u == nil {
		return nil
	}
	for _, own := range d.sockets.own {
		if u.Port == own.Port() && (u.Addr == own.Addr() || own.Addr().IsUnspecified() && u.Addr.IsLoopback()) {
			return fmt.Errorf("the upstream proxy %s is egressd itself: name the proxy of the network", u)
		}
	}
	_, err := gate.Upstream("", nil)(u)
	return err
}

// secretValue reports the placeholder of a secret and its value. A daemon cannot
// put anything into an agent's environment, so the placeholder is one that the
// operator can write down when setting the agent up.
//
// Threat: an agent uses a placeholder where the secret was not meant to go -> it is
// replaced only towards the hosts that the agent's own policy names, in the one
// header, and placeholders of other policies mean nothing at its gate. Left over:
// what those hosts do with the secret.
func (d *daemon) secretValue(env string) (placeholder, value string, ok bool) {
	value = d.c.Getenv(env)
	return "egressd-placeholder-" + env, value, value != ""
}

// newGate makes a gate for n's policy. session is the name in its events; route is
// as in gate.Shared.
func (d *daemon) newGate(n *policyGate, session string, route gateRoute) (*gate.Gate, error) {
	return gate.New(gate.Config{
		Policy: n.current, Resolver: n.resolver, Events: n.sink, Log: d.log.With("policy", n.source.Name), Took: d.metrics.Took, Memory: d.c.Memory,
		Identity:     gate.Identity{Session: session, Isolation: isolation, PolicyName: n.source.Name},
		Interception: gate.Interception{CA: d.trust.authority, RootCAs: d.c.RootCAs, SecretValue: d.secretValue},
		Upstream:     gate.Upstream("", nil),
		Shared:       gate.Shared{Pins: n.pins, Route: route, Resets: &d.resets, Own: d.sockets.own},
	})
}

// prepare makes the gate of every policy, and the one for doors whose clients must
// authenticate. No policy is in force yet.
func (d *daemon) prepare() (err error) {
	for _, s := range d.c.Policies {
		n := &policyGate{source: s, current: new(policy.Current), resolver: &dnsfilter.Resolver{Log: d.log, Asked: d.asked.hear}}
		if n.pins, err = dnsfilter.NewPins(netip.Prefix{}); err != nil {
			return err
		}
		n.record(d)
		if n.gate, err = d.newGate(n, s.Name, d.routes.behind(n)); err != nil {
			return err
		}
		d.policies = append(d.policies, n)
	}
	d.unassigned = &policyGate{current: new(policy.Current), resolver: new(dnsfilter.Resolver)}
	d.unassigned.record(d)
	if d.unassigned.gate, err = d.newGate(d.unassigned, "", d.routes.behind(nil)); err != nil {
		return err
	}
	d.prepareControl()
	return nil
}

// find reports the policy of this name, nil when there is none.
func (d *daemon) find(name string) *policyGate {
	for _, n := range d.policies {
		if n.source.Name == name {
			return n
		}
	}
	return nil
}
