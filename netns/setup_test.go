//go:build linux

package netns

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
)

func localPort(t *testing.T, f *os.File) uint16 {
	t.Helper()
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).AddrPort().Port()
}

func TestSetup(t *testing.T) {
	d := setup(t, capture.Config{Ports: []uint16{443, 22}})
	if d.Mode != capture.ModeNFT || d.ProxyPort != proxyPort || d.Refusals == nil {
		t.Errorf("got %+v", d)
	}
	if got := localPort(t, d.Proxy); got != d.ProxyPort {
		t.Errorf("the proxy listens at %d, not at %d", got, d.ProxyPort)
	}
	if len(d.Transparent) != 1 || len(d.Files()) != 5 {
		t.Errorf("%d transparent listeners, %d files", len(d.Transparent), len(d.Files()))
	}
	for _, f := range d.Files() {
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
			if err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s is inherited by programs inside", f.Name())
			}
		})
	}
	// Programs see an address family: AI_ADDRCONFIG looks for an address that
	// is not loopback.
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(addrs, func(a net.Addr) bool { return a.String() == capture.OwnAddr+"/32" }) {
		t.Errorf("no %s among %v", capture.OwnAddr, addrs)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestSetupKeepsOffReservedPorts(t *testing.T) {
	for _, mode := range []capture.Mode{capture.ModeNFT, capture.ModeAnyIP} {
		t.Run(string(mode), func(t *testing.T) {
			d := setup(t, capture.Config{Mode: mode, Ports: []uint16{3130, 3132}, Reserved: []uint16{3128, 3129, 3131}})
			if slices.Contains([]uint16{0, 3128, 3129, 3131}, d.ProxyPort) {
				t.Errorf("the proxy took %d", d.ProxyPort)
			}
			files, err := capture.ListenLoopback(3128)
			if err != nil {
				t.Fatal(err)
			}
			if len(files) != 2 {
				t.Errorf("%d listeners, want both families", len(files))
			}
			for _, f := range files {
				f.Close()
			}
		})
	}
}

func TestSetupRefusesUnknownMode(t *testing.T) {
	freshNamespace(t)
	if d, err := capture.Setup(capture.Config{Mode: "ntf"}); err == nil || d != nil {
		t.Errorf("got %v, %v", d, err)
	}
}

// Without the right to change the namespace there is no half-made capture.
func TestSetupWithoutCapability(t *testing.T) {
	freshNamespace(t)
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil { // this thread, which dies with the test
		t.Fatal(err)
	}
	if d, err := capture.Setup(capture.Config{}); !errors.Is(err, unix.EPERM) || d != nil {
		t.Errorf("got %v, %v", d, err)
	}
}

// A second set-up would add its rules to those of the first.
func TestSetupTwice(t *testing.T) {
	setup(t, capture.Config{})
	if d, err := capture.Setup(capture.Config{}); err == nil {
		d.Close()
		t.Error("no error")
	}
}

func anyIP(t *testing.T, ports ...uint16) world {
	t.Helper()
	w := world{doors: setup(t, capture.Config{Mode: capture.ModeAnyIP, Ports: ports})}
	w.serve(t)
	return w
}

func TestAnyIP(t *testing.T) {
	anyIP(t, 443, 22, 443, 0, 53, 65535)
	for _, dst := range []string{"8.8.8.8:443", "10.0.0.1:22", "198.18.0.1:65535", "[2606:4700::1111]:443", "127.0.0.1:443"} {
		if got, err := ask(dst, netip.Addr{}); err != nil || got != "gate "+dst {
			t.Errorf("%s: got %q, %v", dst, got, err)
		}
	}
	for _, dst := range []string{"8.8.8.8:80", "[2606:4700::1111]:444", "192.0.2.1:1"} {
		if _, err := ask(dst, netip.Addr{}); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", dst, err)
		}
	}
	for _, at := range dnsServers {
		if err := query(at); err != nil {
			t.Errorf("udp %s: %v", at, err)
		}
		if got, err := ask(at, netip.Addr{}); err != nil || got != "dns "+at {
			t.Errorf("tcp %s: got %q, %v", at, got, err)
		}
	}
	for _, dst := range udpTargets {
		if err := sendUDP(dst); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("udp %s: %v", dst, err)
		}
	}
	for _, dst := range []string{"8.8.8.8", "2606:4700::1111"} {
		if ping(t, dst) {
			t.Errorf("ping %s: answered", dst)
		}
	}
}

// A kernel with IPv6 off: everything works without, and the result says so.
func TestWithoutIPv6(t *testing.T) {
	for _, mode := range []capture.Mode{capture.ModeNFT, capture.ModeAnyIP} {
		t.Run(string(mode), func(t *testing.T) {
			freshNamespace(t)
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6", []byte("1"), 0); err != nil {
				t.Skipf("can't switch IPv6 off here: %v", err)
			}
			d, err := capture.Setup(capture.Config{Mode: mode, Ports: []uint16{443}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			if d.IPv6 || len(d.Notes) == 0 {
				t.Errorf("IPv6 %v, notes %q", d.IPv6, d.Notes)
			}
			world{doors: d}.serve(t)
			if got, err := ask("8.8.8.8:443", netip.Addr{}); err != nil || got != "gate 8.8.8.8:443" {
				t.Errorf("got %q, %v", got, err)
			}
			if err := query("127.0.0.53:53"); err != nil {
				t.Error(err)
			}
			if got, err := ask("[2606:4700::1111]:443", netip.Addr{}); err == nil {
				t.Errorf("IPv6 goes somewhere: %q", got)
			}
			files, err := capture.ListenLoopback(8080)
			if err != nil || len(files) != 1 {
				t.Errorf("%d listeners, %v", len(files), err)
			}
			for _, f := range files {
				f.Close()
			}
		})
	}
}

func TestAnyIPBound(t *testing.T) {
	const maxPorts = 200 // and they fit one message
	freshNamespace(t)
	var ports []uint16
	for p := range uint16(maxPorts + 10) {
		ports = append(ports, 1000+p)
	}
	d, err := capture.Setup(capture.Config{Mode: capture.ModeAnyIP, Ports: ports})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if len(d.Transparent) != maxPorts || len(d.Notes) == 0 {
		t.Errorf("%d listeners, notes %q", len(d.Transparent), d.Notes)
	}
}

// A reply must go to an address that says where it came from.
func TestPacketConnRefusesForeignAddresses(t *testing.T) {
	d := setup(t, capture.Config{})
	pc, err := PacketConn(d.DNSUDP)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	if _, err := pc.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}); err == nil {
		t.Error("no error")
	}
	if _, err := PacketConn(d.DNSTCP); err == nil {
		t.Error("a TCP socket was taken")
	}
}

// The way in takes no time to speak of: the whole start has a few
// milliseconds.
func BenchmarkSetup(b *testing.B) {
	if forbidden != "" {
		b.Skip(forbidden)
	}
	var total time.Duration
	for b.Loop() {
		err := onOwnThread(func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			start := time.Now()
			d, err := capture.Setup(capture.Config{})
			total += time.Since(start)
			if err != nil {
				return err
			}
			return d.Close()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	us := float64(total.Microseconds()) / float64(b.N)
	b.ReportMetric(us, "setup_us/op")
	b.Log(strconv.FormatFloat(us, 'f', 0, 64), "µs")
}
