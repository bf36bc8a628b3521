package e2e

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// watch is a moment in the world's records.
type watch struct {
	w                          *world
	by                         *sniffer
	questions, visits, packets int
}

// sightings is what was seen outside since.
type sightings struct {
	questions []string
	visits    []visit
	packets   []packet // without the questions to the DNS upstream and without replies
	all       []packet
}

func needWorld(t *testing.T) {
	t.Helper()
	readSources(t)
	if env.world == nil {
		t.Skip("no world: " + env.skip)
	}
}

func (w *world) watch() watch {
	return w.watchBy(w.sniffer)
}

// watchBy is watch with a sniffer of the caller's choice.
func (w *world) watchBy(s *sniffer) watch {
	return watch{w: w, by: s, questions: w.dns.mark(), visits: w.origins.mark(), packets: s.mark()}
}

func (b watch) end(t *testing.T) sightings {
	t.Helper()
	packets, err := b.by.since(b.packets)
	if err != nil {
		t.Fatalf("the record of packets is not whole: %v", err)
	}
	s := sightings{questions: b.w.dns.asked(b.questions), visits: b.w.origins.since(b.visits), all: packets}
	upstream := netip.AddrPortFrom(netip.MustParseAddr(upstreamDNS), 53)
	for _, p := range packets {
		switch {
		case p.Dst == upstream || p.Src == upstream:
		case p.Proto == unix.IPPROTO_TCP && p.Reply:
		case (p.Proto == unix.IPPROTO_ICMPV6 || p.Proto == unix.IPPROTO_HOPOPTS) && p.Dst.Addr().IsLinkLocalMulticast(): // the kernel's own neighbour and listener reports
		case p.Proto == unix.IPPROTO_ICMPV6 && p.wire && (p.kind == 135 || p.kind == 136): // neighbour discovery, in answer to the world's
		default:
			s.packets = append(s.packets, p)
		}
	}
	return s
}
