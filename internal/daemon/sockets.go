package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"egressd/gate"
)

// Kinds of sockets, as in the names of the service manager's.
const (
	kindProxy       = "proxy"
	kindTransparent = "transparent"
	kindDNS         = "dns"
	kindAdmin       = "admin"
	kindControl     = "control"
)

// sockets are all that the daemon listens on.
type sockets struct {
	all    []socket
	own    []netip.AddrPort // TCP listeners that the daemon itself could reach
	ownDNS []netip.AddrPort // of DNS doors
}

// socket is one listening socket, or the two of a DNS door.
type socket struct {
	kind   string
	what   string // the flag and value that it comes from
	policy string // name; "": see Config
	inside bool   // in another network namespace: the daemon cannot reach it
	ln     net.Listener
	pc     net.PacketConn // DNS over UDP

	control int // place in daemon.controls, from 1
}

func (s *socket) addr() string {
	switch {
	case s.ln != nil:
		return s.ln.Addr().String()
	case s.pc != nil:
		return s.pc.LocalAddr().String()
	}
	return ""
}

// policyName is the name of the policy of clients that connect here.
func (s *socket) policyName() string {
	if s.policy == "" {
		return DefaultPolicy
	}
	return s.policy
}

// judge names for the log the policy that judges clients here, unless a token or
// a source prefix names another.
func (s *socket) judge(d *daemon) string {
	if s.kind == kindAdmin || d.find(s.policyName()) == nil {
		return "none"
	}
	return s.policyName()
}

func (s *socket) close() {
	if s.ln != nil {
		_ = s.ln.Close() // nothing was served, or it is closed
	}
	if s.pc != nil {
		_ = s.pc.Close()
	}
}

// gateOf reports the gate behind s.
func (d *daemon) gateOf(s *socket) *gate.Gate {
	if n := d.find(s.policyName()); n != nil {
		return n.gate
	}
	return d.unassigned.gate
}

// serve starts a door. DNS doors answer until names ends.
func (s socket) serve(d *daemon, names context.Context) {
	g := d.gateOf(&s)
	ctx, doors := d.tasks.ctx, gate.Doors{}
	switch s.kind {
	case kindProxy:
		doors.Explicit = []net.Listener{s.ln}
	case kindTransparent:
		doors.Transparent = []net.Listener{s.ln}
	case kindDNS:
		ctx, doors.DNSTCP, doors.DNSUDP = names, s.ln, s.pc
	case kindControl:
		d.serveControl(s)
		return
	default:
		return
	}
	d.tasks.Go(func() error {
		if err := g.Serve(ctx, doors); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		return nil
	})
}

// listen opens every socket and finds out which of them the daemon could reach.
func (d *daemon) listen(ctx context.Context) error {
	d.addPassed()
	for _, k := range []struct {
		kind, flag string
		doors      []Door
	}{{kindProxy, "--listen", d.c.Listen}, {kindTransparent, "--transparent", d.c.Transparent}, {kindDNS, "--dns", d.c.DNS}} {
		if d.has(k.kind) {
			continue // the service manager opened them
		}
		for _, door := range k.doors {
			if err := d.openDoor(ctx, k.kind, k.flag, door); err != nil {
				return err
			}
		}
	}
	if err := d.openControl(ctx); err != nil {
		return err
	}
	d.findOwn()
	return nil
}

func (d *daemon) has(kind string) bool {
	for _, s := range d.sockets.all {
		if s.kind == kind {
			return true
		}
	}
	return false
}

// openDoor opens one door, in each of the namespaces where there are any.
func (d *daemon) openDoor(ctx context.Context, kind, flag string, door Door) error {
	s := socket{kind: kind, what: flag + " " + door.String(), policy: door.Policy}
	if len(d.c.Netns) == 0 {
		return d.add(s, func(s *socket) error { return s.open(ctx, door.Addr) })
	}
	for _, ns := range d.c.Netns {
		s := s
		s.what += " in --netns " + ns.String()
		s.inside = true
		if s.policy == "" {
			s.policy = ns.Policy
		}
		if err := d.add(s, func(s *socket) error { return s.openInside(ctx, ns.Addr, door.Addr) }); err != nil {
			return err
		}
	}
	return nil
}

// add opens s and keeps it.
func (d *daemon) add(s socket, open func(*socket) error) error {
	if err := open(&s); err != nil {
		s.close()
		return fmt.Errorf("%s: %w%s", s.what, err, s.hint(err))
	}
	d.sockets.all = append(d.sockets.all, s)
	return nil
}

// open listens where the calling thread is.
func (s *socket) open(ctx context.Context, addr string) (err error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // only plain TCP keeps the destination of captured connections
	version := ipVersion(addr)
	if s.ln, err = lc.Listen(ctx, "tcp"+version, addr); err != nil || s.kind != kindDNS {
		return err
	}
	// With port 0 both get the port that TCP was given, unless it is taken.
	s.pc, err = lc.ListenPacket(ctx, "udp"+version, s.ln.Addr().String())
	for range portTries {
		if err == nil || !strings.HasSuffix(addr, ":0") {
			break
		}
		_ = s.ln.Close() // tried again
		if s.ln, err = lc.Listen(ctx, "tcp"+version, addr); err != nil {
			break
		}
		s.pc, err = lc.ListenPacket(ctx, "udp"+version, s.ln.Addr().String())
	}
	return err
}

// ipVersion is 4 for an IPv4 address. Without it package net listens at 0.0.0.0 on
// IPv6 addresses, too, which an operator who writes 0.0.0.0 does not expect.
func ipVersion(addr string) string {
	if a, err := netip.ParseAddrPort(addr); err == nil && a.Addr().Is4() {
		return "4"
	}
	return ""
}

// portTries bounds the search for a port that is free for both TCP and UDP.
const portTries = 16

// findOwn lists the listeners that the daemon could reach.
//
// Threat: a client asks the gate for the daemon's own admin or DNS address, which
// is out of the client's reach -> no gate dials a listener of this daemon, under
// whatever policy. Left over: unix sockets need no rule, as no gate dials any.
func (d *daemon) findOwn() {
	for _, s := range d.sockets.all {
		if s.inside || s.ln == nil && s.pc == nil {
			continue
		}
		at, err := netip.ParseAddrPort(s.addr())
		if err != nil {
			continue // a unix socket
		}
		at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
		d.sockets.own = append(d.sockets.own, at)
		if s.kind == kindDNS {
			d.sockets.ownDNS = append(d.sockets.ownDNS, at)
		}
	}
}
