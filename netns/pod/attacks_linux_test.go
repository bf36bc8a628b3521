package pod

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/nft"
)

// attack is one way to send something out.
type attack struct {
	name string
	raw  bool // the program has CAP_NET_RAW, as in a container of Docker's defaults
	run  func() (string, error)
	// stops are the walls each of which stops it alone, the others being
	// open: capture, leave, wall, frames.
	stops string
	want  string // part of what the program is told when all stand
	// leaked recognises what it sends; nil: anything but the talk of neighbours.
	leaked func(frame) bool
}

const (
	refused    = "connection refused"
	prohibited = "operation not permitted"
)

var attacks = []attack{
	{name: "tcp4", run: stream(far4 + ":443"), stops: "capture leave wall", want: "gate " + far4 + ":443"},
	{name: "tcp6", run: stream("[" + far6 + "]:443"), stops: "capture leave wall", want: "gate [" + far6 + "]:443"},
	{name: "tcp to the gateway", run: stream(outAddr4 + ":8443"), stops: "capture leave wall", want: "gate " + outAddr4 + ":8443"},
	{name: "tcp to a link-local address", run: stream("[fe80::1%eth0]:443"), stops: "leave wall", want: refused},
	{name: "tcp by an IPv6 socket to an IPv4 address", run: stream("[::ffff:" + far4 + "]:443"), stops: "capture leave wall", want: "gate " + far4 + ":443"},
	{name: "tcp bound to the device", run: stream(far4+":443", boundTo("eth0")), stops: "leave wall"},
	{name: "tcp6 bound to the device", run: stream("["+far6+"]:443", boundTo("eth0")), stops: "leave wall"},
	{name: "tcp with fast open", run: fastOpen(far4 + ":444"), stops: "capture leave wall", want: "gate " + far4 + ":444"},
	{name: "multipath tcp", run: func() (string, error) { return streamOver(unix.IPPROTO_MPTCP, far4+":445") }, stops: "capture leave wall", want: "gate "},
	{name: "udp4", run: datagram(far4 + ":443"), stops: "capture leave wall", want: refused},
	{name: "udp6", run: datagram("[" + far6 + "]:443"), stops: "capture leave wall", want: refused},
	{name: "udp to the gateway", run: datagram(outAddr4 + ":123"), stops: "capture leave wall", want: refused},
	{name: "udp to a link-local address", run: datagram("[fe80::1%eth0]:443"), stops: "leave wall", want: prohibited},
	{name: "udp bound to the device", run: datagram(far4+":446", boundTo("eth0")), stops: "leave wall"},
	{name: "udp to a loopback address by the device", run: datagram("127.9.9.9:446", boundTo("eth0")), stops: "wall", want: prohibited},
	{name: "udp in fragments", run: func() (string, error) { return datagramOver(0, far4+":447", make([]byte, 4000)) }, stops: "capture leave wall", want: refused},
	{name: "udp6 in fragments", run: func() (string, error) { return datagramOver(0, "["+far6+"]:447", make([]byte, 4000)) }, stops: "capture leave wall", want: refused},
	{name: "udp-lite", run: func() (string, error) { return datagramOver(unix.IPPROTO_UDPLITE, far4+":443", []byte("LEAK")) }, stops: "leave wall", want: prohibited},
	{name: "dns to a foreign server", run: datagram(far4 + ":53"), stops: "capture leave wall", want: "dns"},
	{name: "dns6 to a foreign server", run: datagram("[" + far6 + "]:53"), stops: "capture leave wall", want: "dns"},
	{name: "dns over tcp", run: stream(far4 + ":53"), stops: "capture leave wall", want: "dns " + far4 + ":53"},
	{name: "ping", run: ping(far4 + ":0"), stops: "leave wall", want: prohibited},
	{name: "ping6", run: ping("[" + far6 + "]:0"), stops: "leave wall", want: refused},
	{name: "multicast", run: datagram("239.1.2.3:5000"), stops: "leave wall", want: prohibited},
	{name: "multicast6", run: datagram("[ff02::fb%eth0]:5353"), stops: "leave wall", want: prohibited},
	{name: "broadcast", run: datagram("255.255.255.255:9", setInt(unix.SOL_SOCKET, unix.SO_BROADCAST, 1)), stops: "leave wall", want: prohibited},
	{name: "broadcast to the network", run: datagram("198.51.100.255:9", setInt(unix.SOL_SOCKET, unix.SO_BROADCAST, 1)), stops: "capture leave wall"},
	{name: "data as the name of a group", run: join("239.76.69.65"), stops: "leave wall", want: "joined", leaked: membership4},
	{
		name: "data as the name of an IPv6 group", run: join("ff0e::4c45:414b"), stops: "leave wall", want: "joined",
		leaked: contains6("\xff\x0e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00LEAK"),
	},
	{name: "source route", raw: true, run: datagram(far4+":448", setBytes(unix.IPPROTO_IP, unix.IP_OPTIONS, sourceRoute(outAddr4))), stops: "capture leave wall"},
	{name: "routing header", run: datagram("["+far6+"]:448", setBytes(unix.IPPROTO_IPV6, unix.IPV6_RTHDR, segments(outAddr6))), stops: "capture leave wall"},
	{name: "mark without a capability", run: datagram(far4+":449", tolerant(setInt(unix.SOL_SOCKET, unix.SO_MARK, testMark))), stops: "capture leave wall", want: refused},
	{name: "another user", run: become, stops: "capture leave wall", want: refused},
	{name: "nested user namespace", run: nested("udp4"), stops: "capture leave wall", want: refused},
	{
		name: "answers to a made-up visitor", stops: "leave wall",
		run: func() (string, error) { return replyTo("[2001:db8::bad]:7777", "[::1]:5000") },
	},

	{name: "raw icmp", raw: true, run: rawSend(unix.IPPROTO_ICMP, far4+":0", []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}), stops: "leave wall", want: prohibited},
	{name: "raw protocol", raw: true, run: rawSend(253, far4+":0", []byte("LEAK")), stops: "leave wall", want: prohibited},
	{name: "raw protocol over IPv6", raw: true, run: rawSend(253, "["+far6+"]:0", []byte("LEAK")), stops: "leave wall", want: prohibited},
	{name: "sctp", raw: true, run: rawSend(unix.IPPROTO_SCTP, far4+":0", transportHead(9, 12)), stops: "leave wall", want: prohibited},
	{name: "dccp", raw: true, run: rawSend(unix.IPPROTO_DCCP, far4+":0", transportHead(9, 16)), stops: "leave wall", want: prohibited},
	{name: "gre", raw: true, run: rawSend(unix.IPPROTO_GRE, far4+":0", make([]byte, 8)), stops: "leave wall", want: prohibited},
	{name: "neighbour solicitation by a program", raw: true, run: rawSend(unix.IPPROTO_ICMPV6, "[ff02::1:ff00:1%eth0]:0", solicitation()), stops: "leave wall", want: prohibited, leaked: contains6("LEAKLEAK")},
	{name: "packet with its own header", raw: true, run: rawSend(unix.IPPROTO_RAW, far4+":0", ip4("198.51.100.2", far4, 17, udpHead(450))), stops: "capture leave wall"},
	{name: "packet of somebody else", raw: true, run: rawSend(unix.IPPROTO_RAW, far4+":0", ip4("198.51.100.77", far4, 17, udpHead(451))), stops: "capture leave wall"},
	{name: "segment out of the blue", raw: true, run: rawSend(unix.IPPROTO_RAW, far4+":0", ip4("198.51.100.2", far4, 6, tcpHead(452, 16))), stops: "capture leave wall"},
	{name: "segment with no flags", raw: true, run: rawSend(unix.IPPROTO_RAW, far4+":0", ip4("198.51.100.2", far4, 6, tcpHead(453, 0))), stops: "leave wall", want: prohibited},
	{name: "first fragment alone", raw: true, run: rawSend(unix.IPPROTO_RAW, far4+":0", fragment(ip4("198.51.100.2", far4, 17, udpHead(454)), 0x2000)), stops: "capture leave wall frames"},
	{name: "later fragment alone", raw: true, run: rawSend(unix.IPPROTO_RAW, far4+":0", fragment(ip4("198.51.100.2", far4, 17, udpHead(455)), 100)), stops: "capture leave wall frames"},
	{name: "destination options", raw: true, run: stream("["+far6+"]:456", setBytes(unix.IPPROTO_IPV6, unix.IPV6_DSTOPTS, []byte{0, 0, 1, 4, 0, 0, 0, 0})), stops: "capture leave wall", want: "gate "},
	{name: "mark with a capability", raw: true, run: datagram(far4+":457", tolerant(setInt(unix.SOL_SOCKET, unix.SO_MARK, 0x99))), stops: "capture leave wall"},
	{name: "visitor made up by a raw socket", raw: true, run: fakeVisitor, stops: "capture leave wall"},
	{name: "frame of IP", raw: true, run: frameSend(etherIPv4, ip4("198.51.100.2", far4, 17, udpHead(458))), stops: "frames"},
	{name: "frame of no protocol", raw: true, run: frameSend(0x88b5, []byte("LEAK")), stops: "frames"},
	{name: "frame past the queue", raw: true, run: frameSend(0x88b5, []byte("LEAK"), setInt(unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)), stops: "frames"},
	{name: "frame of ARP", raw: true, run: frameSend(etherARP, []byte("LEAKLEAKLEAKLEAKLEAKLEAKLEAK")), stops: "frames", leaked: func(f frame) bool { return bytes.Contains(f, []byte("LEAKLEAK")) }},
	{name: "frame with a mark", raw: true, run: frameSend(0x88b5, []byte("LEAK"), tolerant(setInt(unix.SOL_SOCKET, unix.SO_MARK, 0x10000000))), stops: "frames"},
}

// onRules are ways to take the walls down. They send nothing.
var onRules = []attack{
	{name: "remove the rules", run: dropTable},
	{name: "remove the rules in a nested user namespace", run: nested("remove the rules")},
}

// Who may not change the namespace's rules does not, with CAP_NET_RAW neither.
func TestRulesStay(t *testing.T) {
	newWorld(t)
	rules := testRules()
	if _, err := rules.Install(); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{false, true} {
		agent := startAgent(t, raw)
		for _, a := range onRules {
			if said := agent.try(t, a.name); !strings.Contains(said, prohibited) {
				t.Errorf("%s: the program is told %q", a.name, said)
			}
			if err := rules.Verify(); err != nil {
				t.Fatalf("%s: %v", a.name, err)
			}
		}
	}
	if said, err := dropTable(); err != nil { // who may, does: the attack is one
		t.Fatal(said, err)
	}
	if rules.Verify() == nil {
		t.Error("the rules are said to be there after they were removed")
	}
}

// tolerant goes on without the option where it is refused: that is a wall too,
// and not the one in question.
func tolerant(o option) option {
	return func(fd int) error { _ = o(fd); return nil }
}

// membership4 recognises IGMP (RFC 3376).
func membership4(f frame) bool {
	return f.kind() == etherIPv4 && len(f) > 23 && f.payload()[9] == unix.IPPROTO_IGMP
}

func contains6(data string) func(frame) bool {
	return func(f frame) bool { return f.kind() == etherIPv6 && bytes.Contains(f, []byte(data)) }
}

// sourceRoute is a loose source route (RFC 791 section 3.1) by one hop.
func sourceRoute(hop string) []byte {
	a := netip.MustParseAddr(hop).As4()
	return append([]byte{131, 7, 4}, append(a[:], 0)...)
}

// segments is a segment routing header (RFC 8754) by one hop; the kernel puts
// in the destination.
func segments(hop string) []byte {
	a := netip.MustParseAddr(hop).As16()
	b := []byte{0, 4, 4, 1, 1, 0, 0, 0} // next, length in 8 bytes, type, left, last, flags, tag
	return append(append(b, make([]byte, 16)...), a[:]...)
}

// transportHead is the start of a header with ports, and zeros.
func transportHead(port uint16, length int) []byte {
	b := make([]byte, length)
	binary.BigEndian.PutUint16(b, 4321)
	binary.BigEndian.PutUint16(b[2:], port)
	return b
}

func udpHead(port uint16) []byte {
	b := append(transportHead(port, 8), "LEAK"...)
	b[5] = byte(len(b))
	return b
}

func tcpHead(port uint16, flags byte) []byte {
	b := append(transportHead(port, 20), "LEAK"...)
	b[12], b[13] = 5<<4, flags
	return b
}

// solicitation is a neighbour solicitation with room for data.
func solicitation() []byte {
	b := append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...)
	return append(b, "\x01\x01LEAKLE\x01\x01LEAKLEAK"...)
}

// ip4 is a packet whose checksum and length the kernel fills in.
func ip4(src, dst string, proto byte, data []byte) []byte {
	s, d := netip.MustParseAddr(src).As4(), netip.MustParseAddr(dst).As4()
	b := []byte{0x45, 0, 0, byte(20 + len(data)), 0, 1, 0, 0, 64, proto, 0, 0}
	return slices.Concat(b, s[:], d[:], data)
}

// fragment sets the field of flags and offset.
func fragment(packet []byte, field uint16) []byte {
	b := slices.Clone(packet)
	binary.BigEndian.PutUint16(b[6:], field)
	return b
}

// replyTo visits the program's own server from an address outside, and lets
// the server answer.
func replyTo(visitor, server string) (string, error) {
	ln, err := prepare(unix.SOCK_DGRAM, 0, server, []option{from(server)})
	if err != nil {
		return "", err
	}
	defer unix.Close(ln)
	const freebind = 78 // IPV6_FREEBIND
	fd, err := prepare(unix.SOCK_DGRAM, 0, visitor, []option{setInt(unix.IPPROTO_IPV6, freebind, 1), from(visitor)})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, []byte("visit"), 0, sockaddr(server)); err != nil {
		return "", err
	}
	if _, err := receive(ln); err != nil {
		return "", err
	}
	if err := unix.Sendto(ln, []byte("LEAK"), 0, sockaddr(visitor)); err != nil {
		return "", err
	}
	return "sent", nil
}

// fakeVisitor does the same with a raw socket and the pod's own address.
func fakeVisitor() (string, error) {
	const server = podAddr4 + ":5001"
	ln, err := prepare(unix.SOCK_DGRAM, 0, server, []option{from(server)})
	if err != nil {
		return "", err
	}
	defer unix.Close(ln)
	packet := ip4("203.0.113.66", podAddr4, 17, udpHead(5001))
	if said, err := rawSend(unix.IPPROTO_RAW, podAddr4+":0", packet)(); err != nil {
		return said, err
	}
	if err := unix.Sendto(ln, []byte("LEAK"), 0, sockaddr("203.0.113.66:4321")); err != nil {
		return "", err
	}
	return "sent", nil
}

// opened is the blueprint with only those walls standing.
func opened(r Rules, standing string) []nft.Table {
	if standing == "" {
		return nil // not even connection tracking
	}
	tables := r.tables([]string{"eth0"})
	for i := range tables[0].Chains {
		c := &tables[0].Chains[i]
		if c.Base == nil || c.Name == "arrive" || strings.Contains(" "+standing+" ", " "+c.Name+" ") {
			continue
		}
		c.Base.Accept, c.Rules = true, nil
	}
	if !strings.Contains(standing, "frames") {
		return tables[:1]
	}
	return tables
}

const allWalls = "capture leave wall frames forward"

// Every attack, against all walls, against each wall alone, and against none:
// nothing gets out while one stands that is said to stop it, and it does get
// out when that one is missing, so each is needed and each is tested.
func TestAttacks(t *testing.T) {
	for _, standing := range []string{allWalls, "capture", "leave", "wall", "frames", ""} {
		t.Run("standing "+standing, func(t *testing.T) {
			w := newWorld(t)
			group := "0 2147483647"
			if !asRoot() {
				group = "0 0"
			}
			sysctl(t, "ipv4/ping_group_range", group)
			if tables := opened(testRules(), standing); tables != nil {
				apply(t, tables...)
			}
			doors(t)
			agents := map[bool]*agent{false: startAgent(t, false), true: startAgent(t, true)}
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) {
					a.against(t, w, agents[a.raw], standing)
				})
			}
		})
	}
}

func (a attack) against(t *testing.T, w *world, agent *agent, standing string) {
	t.Helper()
	stops := false
	for _, s := range strings.Fields(standing) {
		stops = stops || slices.Contains(strings.Fields(a.stops), s)
	}
	n := w.sniff.count()
	said := agent.try(t, a.name)
	got := a.leaks(w.settle(t, n))
	for deadline := time.Now().Add(patience); !stops && len(got) == 0 && time.Now().Before(deadline); {
		<-time.After(20 * time.Millisecond) // reports about groups are late on purpose
		got = a.leaks(w.sniff.since(n))
	}
	switch {
	case stops && len(got) > 0:
		t.Errorf("got out (%s): %v", said, got)
	case !stops && len(got) == 0:
		t.Errorf("did not get out although nothing should stop it, so this row proves nothing: %s", said)
	}
	if standing == allWalls && !strings.Contains(said, a.want) {
		t.Errorf("the program is told %q, want %q", said, a.want)
	}
}

func (a attack) leaks(frames []frame) []frame {
	leaked := a.leaked
	if leaked == nil {
		// The kernel repeats reports about groups: an earlier row's.
		leaked = func(f frame) bool { return !f.neighbours() && !membership4(f) }
	}
	var out []frame
	for _, f := range frames {
		if leaked(f) && !probed(f) {
			out = append(out, f)
		}
	}
	return out
}

// probed reports whether f answers the test's own probe.
func probed(f frame) bool {
	p := f.payload()
	return f.kind() == etherIPv4 && len(p) >= 40 && p[9] == unix.IPPROTO_TCP && binary.BigEndian.Uint16(p[20:]) == 4
}
