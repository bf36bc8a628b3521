package e2e

import (
	"os"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// escapes lists every attempt, by wall.
func escapes(c canaries) []escape {
	var all []escape
	all = append(all, directTCP()...)
	all = append(all, datagrams()...)
	all = append(all, otherProtocols()...)
	all = append(all, dnsPaths()...)
	all = append(all, families()...)
	all = append(all, unixSockets(c)...)
	all = append(all, namespaces()...)
	all = append(all, processes(c)...)
	all = append(all, systemCalls()...)
	all = append(all, filesAndDevices(c)...)
	return all
}

// directTCP: programs that connect to addresses. Every one is captured and, no
// rule naming it, refused and recorded.
func directTCP() []escape {
	var rows []escape
	to := func(name, op, addr string, port uint16) {
		rows = append(rows, escape{name: name, job: job.Job{Op: op, Via: addrPort(addr, port)}, event: []string{addr}})
	}
	to("TCP to a public address, 443", "tcp", "11.1.0.1", 443)
	to("TCP to a public address, 80", "tcp", "11.1.0.2", 80)
	to("TCP to a public address, 22", "tcp", "11.1.0.3", 22)
	to("TCP to a public address, 8080", "tcp", "11.1.0.4", 8080)
	to("TCP to a public address, 853", "tcp", "11.1.0.5", 853)
	to("TCP to a private address", "tcp", "10.1.0.6", 8080)
	to("TCP to 192.168/16", "tcp", "192.168.1.7", 8080)
	to("TCP to the metadata service", "tcp", "169.254.169.254", 80)
	to("TCP to Alibaba's metadata service", "tcp", "100.100.100.200", 80)
	to("TCP to AWS's metadata service over IPv6", "tcp", "fd00:ec2::254", 80)
	to("TCP to a public IPv6 address", "tcp", "2600:1::8", 443)
	to("TCP to a ULA", "tcp", "fd12:3456::9", 8080)
	to("TCP to Docker's gateway", "tcp", "172.17.0.1", 8080)
	to("TCP to a synthetic address nobody was given", "tcp", "198.19.255.10", 443)
	to("TCP to the real address of an allowed name", "tcp", publicAddr("allowed.example.com").String(), 8080)
	to("TCP to the DNS upstream", "tcp", upstreamDNS, 8080)
	to("TCP in single bytes", "tcp.split", "11.1.0.12", 8080)
	to("multipath TCP", "tcp.mptcp", "11.1.0.13", 8080)
	rows[len(rows)-1].event = nil // the sandbox may refuse the protocol itself
	to("TCP fast open, data in the SYN", "tcp.fastopen", "11.1.0.14", 8080)
	to("TCP bound to an interface", "tcp.bindtodev", "11.1.0.15", 8080)
	rows[len(rows)-1].event = nil // refused by the system call or captured, as the kernel likes
	quiet := func(name, op, addr string, port uint16, c control) {
		rows = append(rows, escape{name: name, job: job.Job{Op: op, Via: addrPort(addr, port)}, control: c})
	}
	quiet("TCP to the host's loopback", "tcp", "127.0.0.1", 8080, works)
	quiet("TCP to another address of the host's loopback", "tcp", "127.0.0.2", 9000, works)
	quiet("TCP to the host's loopback over IPv6", "tcp", "::1", 8080, works)
	quiet("TCP to 0.0.0.0", "tcp", "0.0.0.0", 8080, works)
	quiet("TCP to ::", "tcp", "::", 8080, works)
	quiet("TCP with a firewall mark", "tcp.mark", "11.1.0.16", 8080, asRoot)
	quiet("TCP with IP_TRANSPARENT", "tcp.transparent", "11.1.0.17", 8080, asRoot)
	quiet("TCP with a source route", "tcp.sourceroute", "11.1.0.18", 8080, maybe)
	return rows
}

// datagrams: nothing of UDP but port 53 is carried.
func datagrams() []escape {
	var rows []escape
	to := func(name, op, addr string, port uint16, ctl control, event ...string) {
		rows = append(rows, escape{name: name, job: job.Job{Op: op, Via: addrPort(addr, port)}, control: ctl, event: event})
	}
	to("UDP to a public address", "udp", "11.2.0.1", 4242, works, "udp", "11.2.0.1")
	to("QUIC's port", "udp", "11.2.0.2", 443, works, "udp", "11.2.0.2")
	to("NTP", "udp", "11.2.0.3", 123, works, "udp", "11.2.0.3")
	to("UDP over IPv6", "udp", "2600:2::4", 4242, works, "udp", "2600:2::4")
	to("UDP to the host's loopback", "udp", "127.0.0.1", 4242, works)
	to("UDP to the host's loopback over IPv6", "udp", "::1", 4242, works)
	to("UDP to a private address", "udp", "10.2.0.5", 4242, works, "udp", "10.2.0.5")
	to("UDP to the metadata service", "udp", "169.254.169.254", 123, works, "udp", "169.254.169.254")
	to("UDP broadcast", "udp.broadcast", "255.255.255.255", 4242, maybe)
	to("mDNS", "udp.multicast", "224.0.0.251", 5353, leaking)
	to("SSDP", "udp.multicast", "239.255.255.250", 1900, leaking)
	to("LLMNR over IPv6", "udp.multicast", "ff02::1:3", 5355, leaking)
	for i := range rows[len(rows)-3:] {
		rows[len(rows)-3+i].done = true // sent to our own loopback inside: only what arrives outside counts
	}
	to("UDP-Lite", "udplite", "11.2.0.9", 4242, maybe)
	return rows
}

// otherProtocols: everything that is neither TCP nor UDP.
func otherProtocols() []escape {
	ping := func(name, op, addr string) escape {
		return escape{name: name, job: job.Job{Op: op, Via: addr}, control: maybe}
	}
	rows := []escape{
		ping("ping", "icmp.dgram", "11.3.0.1"),
		ping("ping the host's loopback", "icmp.dgram", "127.0.0.1"),
		ping("ping over IPv6", "icmp.dgram", "2600:3::1"),
		{name: "raw ICMP", job: job.Job{Op: "icmp.raw", Via: "11.3.0.2"}, control: asRoot},
		{name: "raw ICMPv6", job: job.Job{Op: "icmp.raw", Via: "2600:3::2"}, control: asRoot},
		{name: "a raw packet, GRE", job: job.Job{Op: "raw.ip", Via: "11.3.0.3", Port: unix.IPPROTO_GRE}, control: asRoot},
		{name: "a raw packet, IP in IP", job: job.Job{Op: "raw.ip", Via: "11.3.0.4", Port: unix.IPPROTO_IPIP}, control: asRoot},
		{name: "a raw packet, TCP", job: job.Job{Op: "raw.ip", Via: "11.3.0.5", Port: unix.IPPROTO_TCP}, control: asRoot},
		{name: "a raw packet, ESP", job: job.Job{Op: "raw.ip", Via: "11.3.0.6", Port: unix.IPPROTO_ESP}, control: asRoot},
		{name: "a frame below IP", job: job.Job{Op: "packet"}, control: asRoot},
		{name: "SCTP", job: job.Job{Op: "sctp", Via: addrPort("11.3.0.7", 8080)}, control: maybe},
		{name: "SCTP over IPv6", job: job.Job{Op: "sctp", Via: addrPort("2600:3::7", 8080)}, control: maybe},
		{name: "DCCP", job: job.Job{Op: "dccp", Via: addrPort("11.3.0.8", 8080)}, control: maybe},
	}
	return rows
}

// dnsPaths: a name that no rule covers, asked in every way there is. The token
// is in the name: a question that leaves carries it out.
func dnsPaths() []escape {
	var rows []escape
	const tunnel = "{token}.tunnel.example.org"
	ask := func(name, via, host string, qtype uint16, event ...string) {
		rows = append(rows, escape{name: name, job: job.Job{Op: "door.dns", Via: via, Host: host, QType: qtype}, event: event, done: true})
	}
	ask("DNS to the configured server", "", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS to 8.8.8.8", "8.8.8.8:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS to 127.0.0.53", "127.0.0.53:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS to 127.0.0.1", "127.0.0.1:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS to ::1", "[::1]:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS to an IPv6 server", "[2001:4860:4860::8888]:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS over TCP", "tcp://8.8.8.8:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS over TCP and IPv6", "tcp://[2001:4860:4860::8888]:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS over TCP to loopback", "tcp://127.0.0.1:53", tunnel, 1, "{token}.tunnel.example.org")
	ask("DNS to our own upstream", upstreamDNS+":53", tunnel, 1, "{token}.tunnel.example.org")
	for _, q := range []struct {
		name string
		typ  uint16
	}{{"AAAA", 28}, {"TXT", 16}, {"NULL", 10}, {"CNAME", 5}, {"MX", 15}, {"NS", 2}, {"SRV", 33}, {"HTTPS", 65}, {"ANY", 255}, {"PTR", 12}, {"SOA", 6}, {"DNSKEY", 48}, {"AXFR", 252}, {"a private type", 65400}} {
		ask("a DNS question of type "+q.name, "", tunnel, q.typ)
	}
	ask("labels under an allowed name", "", "{token}.allowed.example.com", 1)
	ask("TXT of an allowed name", "", "allowed.example.com", 16)
	ask("a long name in labels", "", "{token}.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.tunnel.example.org", 1)
	ask("labels of control bytes", "", "{token}\x00\x01\x1b[31m.tunnel.example.org", 1)
	for i := range rows {
		rows[i].control = works
	}
	rows = append(rows,
		escape{name: "DNS of class CHAOS", job: job.Job{Op: "door.dns", Host: tunnel, QType: 16, QClass: 3}, control: works, done: true},
		escape{name: "two questions in one message", job: job.Job{Op: "door.dns", Raw: twoQuestions()}, control: works, done: true},
		escape{name: "mDNS, unicast", job: job.Job{Op: "udp", Via: addrPort("11.2.0.20", 5353)}, control: works, event: []string{"11.2.0.20"}},
		escape{name: "DNS over TLS to an address", job: job.Job{Op: "tcp", Via: addrPort("11.2.0.21", 853)}, control: works, event: []string{"11.2.0.21"}},
		escape{name: "DNS over HTTPS to an address", job: job.Job{Op: "door.direct", Host: "11.2.0.22", Port: 443, Payload: job.Payload{Kind: "https", SNI: "dns.example.org", Path: "/dns-query?dns={token}"}}, control: works, event: []string{"11.2.0.22"}},
	)
	return rows
}

// twoQuestions asks for an allowed name and, behind it, for one that is not.
func twoQuestions() []byte {
	m := []byte{0x13, 0x37, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0}
	m = append(m, "\x07allowed\x07example\x03com\x00\x00\x01\x00\x01"...)
	return append(m, "\x08smuggled\x06tunnel\x07example\x03org\x00\x00\x01\x00\x01"...)
}

// families: sockets that are neither unix nor IP.
func families() []escape {
	var rows []escape
	for _, f := range []struct {
		name   string
		family int
		typ    uint16
		proto  uint16
	}{
		{"AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
		{"AF_BLUETOOTH", unix.AF_BLUETOOTH, unix.SOCK_SEQPACKET, 0},
		{"AF_CAN", unix.AF_CAN, unix.SOCK_RAW, 1},
		{"AF_TIPC", unix.AF_TIPC, unix.SOCK_SEQPACKET, 0},
		{"AF_RDS", unix.AF_RDS, unix.SOCK_SEQPACKET, 0},
		{"AF_KCM", unix.AF_KCM, unix.SOCK_SEQPACKET, 0},
		{"AF_XDP", unix.AF_XDP, unix.SOCK_RAW, 0},
		{"AF_PPPOX", unix.AF_PPPOX, unix.SOCK_DGRAM, 0},
		{"AF_KEY", unix.AF_KEY, unix.SOCK_RAW, 2},
		{"AF_SMC", unix.AF_SMC, unix.SOCK_STREAM, 0},
		{"AF_QIPCRTR", unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0},
		{"AF_NFC", unix.AF_NFC, unix.SOCK_SEQPACKET, 0},
		{"AF_PACKET, raw", unix.AF_PACKET, unix.SOCK_RAW, 0x0300},
		{"raw IPv4", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP},
		{"raw IPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_UDP},
	} {
		ctl := maybe
		if f.family == unix.AF_PACKET || f.family == unix.AF_INET || f.family == unix.AF_INET6 {
			ctl = asRoot
		}
		rows = append(rows, escape{name: "a socket of " + f.name, job: job.Job{Op: "socket", Port: f.family, QType: f.typ, QClass: f.proto}, control: ctl})
	}
	rows = append(rows, escape{name: "vsock to the machine's host", job: job.Job{Op: "vsock"}, control: maybe})
	for _, n := range []struct {
		name  string
		proto int
	}{{"netfilter", unix.NETLINK_NETFILTER}, {"audit", unix.NETLINK_AUDIT}, {"kernel events", unix.NETLINK_KOBJECT_UEVENT}, {"generic", unix.NETLINK_GENERIC}, {"xfrm", unix.NETLINK_XFRM}, {"socket diagnosis", unix.NETLINK_INET_DIAG}, {"connector", unix.NETLINK_CONNECTOR}, {"crypto", unix.NETLINK_CRYPTO}} {
		rows = append(rows, escape{name: "netlink: " + n.name, job: job.Job{Op: "netlink.open", Port: n.proto}, control: maybe})
	}
	return rows
}

// unixSockets: canaries listen at each place where real ones do.
func unixSockets(c canaries) []escape {
	var rows []escape
	for _, path := range c.sockets {
		rows = append(rows, escape{name: "unix socket " + parent(path), job: job.Job{Op: "unix", Via: path}})
	}
	for _, path := range c.dgrams {
		rows = append(rows, escape{name: "unix datagram socket " + parent(path), job: job.Job{Op: "unix.dgram", Via: path}})
	}
	rows = append(rows,
		escape{name: "abstract unix socket", job: job.Job{Op: "unix.abstract", Via: c.abstract}},
		escape{name: "unix socket by way of /proc/self/root", job: job.Job{Op: "unix", Via: "/proc/self/root" + c.sockets[0]}},
		escape{name: "unix socket by way of /proc/self/cwd", job: job.Job{Op: "unix", Via: "/proc/self/root" + c.sockets[len(c.sockets)-1]}},
		escape{name: "any unix socket below the working directory", job: job.Job{Op: "unix.find", Via: c.dir}},
		escape{name: "any unix socket below /run", job: job.Job{Op: "unix.find", Via: "/run"}, control: maybe},
		escape{name: "any unix socket below /var", job: job.Job{Op: "unix.find", Via: "/var"}, control: maybe},
		escape{name: "any unix socket below /tmp", job: job.Job{Op: "unix.find", Via: "/tmp"}},
		escape{name: "any unix socket below /dev", job: job.Job{Op: "unix.find", Via: "/dev"}},
	)
	for _, path := range []string{"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket", "/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/run/systemd/private"} {
		rows = append(rows, escape{name: path, job: job.Job{Op: "unix", Via: path}, control: maybe})
	}
	return rows
}

func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			if len(path[:i]) > 20 {
				return "in the working directory"
			}
			return "in " + path[:i]
		}
	}
	return path
}

// selfPid is this test's own process: one outside that a probe could try to reach.
func selfPid() int { return os.Getpid() }
