package verify

import (
	"net"
	"path/filepath"
	"strings"
)

// Addresses to try. Nothing is at those of documentation (RFC 5737, RFC 3849):
// an answer from there is egressd's.
const (
	nowhere4 = "192.0.2.53"
	nowhere6 = "2001:db8::53"
	public4  = "1.1.1.1"
	public6  = "2606:4700:4700::1111"
)

func platformChecks(c Config) ([]check, error) {
	checks := []check{
		{"this is not egressd's user", notExempt},
		{"no capability that undoes the capture", noCapabilities},
		{"become egressd's user", becomeExempt},
		{"read or change the rules", touchRules},
		{"mark packets", markPackets},
		{"raw socket", rawSocket},
		{"packet socket", packetSocket},
		{"the host by AF_VSOCK", vsock},
	}
	for _, addr := range []string{public4 + ":443", public4 + ":80", public4 + ":22", public4 + ":853", nowhere4 + ":4444", "169.254.169.254:80", "[" + public6 + "]:443", "[" + nowhere6 + "]:4444"} {
		checks = append(checks, check{"TCP to " + addr, tcpTo(addr)})
	}
	for _, addr := range []string{public4 + ":443", public4 + ":123", nowhere4 + ":4444", "[" + public6 + "]:443", "[" + nowhere6 + "]:4444"} {
		checks = append(checks, check{"UDP to " + addr, udpTo(addr)})
	}
	for _, addr := range []string{"239.255.255.250:1900", "255.255.255.255:9"} {
		checks = append(checks, check{"UDP to everybody, " + addr, udpTo(addr)})
	}
	for _, addr := range []string{public4, public6} {
		checks = append(checks, check{"ping " + addr, pingTo(addr)})
	}
	for _, server := range []string{public4 + ":53", "8.8.8.8:53", nowhere4 + ":53", "127.0.0.11:53", "[" + public6 + "]:53"} {
		checks = append(checks,
			check{"DNS by UDP at " + server, dnsAt("udp", server)},
			check{"DNS by TCP at " + server, dnsAt("tcp", server)})
	}
	if name := device(); name != "" {
		checks = append(checks,
			check{"UDP bound to " + name, udpBound(name, nowhere4+":4444")},
			check{"UDP to a loopback address by " + name, udpBound(name, "127.9.9.9:4444")})
	}
	return append(checks, ownChecks(c)...), nil
}

// ownChecks try egressd's own surfaces.
func ownChecks(c Config) []check {
	var checks []check
	for _, addr := range c.Admin {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			checks = append(checks, check{"egressd's socket " + path, unixAt(path)})
			continue
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		for _, host := range append([]string{"127.0.0.1", "::1"}, ownAddresses()...) {
			at := net.JoinHostPort(host, port)
			checks = append(checks, check{"egressd's admin address " + at, adminAt(at)})
		}
	}
	for _, file := range c.Policy {
		checks = append(checks, check{"write the policy " + file, writable(file)},
			check{"replace the policy in " + filepath.Dir(file), writable(filepath.Dir(file))})
	}
	return append(checks, check{"egressd's memory", memory})
}

// maxOwn bounds the addresses of this container that are tried.
const maxOwn = 8

func ownAddresses() []string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var own []string
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && len(own) < maxOwn {
			own = append(own, n.IP.String())
		}
	}
	return own
}

// device is an interface that leads out; "" when there is none.
func device() string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return ""
}
