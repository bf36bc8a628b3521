package capture

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

const (
	dnsPort         = 53
	proxyPort       = 3128 // the usual port of a proxy; the next free one when it is reserved
	transparentPort = 3129

	// maxAnyIPPorts bounds the listeners of ModeAnyIP: descriptors travel in
	// one message (SCM_MAX_FD is 253).
	maxAnyIPPorts = 200
)

// Setup is Link and Open on a locked thread: it prepares the calling thread's
// network namespace for capture. It needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE
// over that namespace, and is meant for a namespace that was made for this: it
// is called once, before anything else runs there. When it returns without an
// error the rules are in place and every listener listens; after an error
// nothing may be run in the namespace. The caller closes the Doors.
func Setup(c Config) (*Doors, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := Link()
	if err != nil {
		return nil, err
	}
	return l.Open(c)
}

// Open captures the calling thread's namespace, which is l's. It needs
// CAP_NET_ADMIN and CAP_NET_BIND_SERVICE over it. When it returns without an
// error the rules are in place and every listener listens; after an error
// nothing may be run in the namespace, but Open may be called again: with
// ModeNFT an error that is [ErrNotSupported] leaves it as it was. The caller
// closes the Doors. The thread is as for Link: sockets belong to the namespace
// of the thread that makes them.
func (l *Linked) Open(c Config) (*Doors, error) {
	d := &Doors{IPv6: l.IPv6, Dummy: l.Dummy}
	if err := d.open(c); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if !d.IPv6 {
		d.note("this kernel has no IPv6: programs see a machine without it")
	}
	return d, nil
}

func (d *Doors) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

func (d *Doors) open(c Config) error {
	switch c.Mode {
	case ModeNFT:
		err := d.openNFT(c)
		if netlink.NFTAbsent(err) {
			err = errors.Join(ErrNotSupported, err)
		}
		return err
	case ModeAnyIP:
		return d.openAnyIP(c)
	case ModeAuto:
	default:
		return fmt.Errorf("unknown capture mode %q", c.Mode)
	}
	err := d.openNFT(c)
	if !errors.Is(err, errRules) || !netlink.NFTAbsent(err) {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	*d = Doors{IPv6: d.IPv6, Dummy: d.Dummy}
	d.note("this kernel can't redirect with nftables (%v)", err)
	return d.openAnyIP(c)
}

// openNFT installs the rules first and opens the doors after: whatever happens
// in between is refused.
func (d *Doors) openNFT(c Config) error {
	taken := append([]uint16{dnsPort}, c.Reserved...)
	transparent := freePort(transparentPort, taken)
	d.Mode, d.ProxyPort = ModeNFT, freePort(proxyPort, append(taken, transparent))
	if err := d.applyRules(transparent); err != nil {
		return err
	}
	return d.Listen([]uint16{transparent})
}

func (d *Doors) openAnyIP(c Config) error {
	d.Mode = ModeAnyIP
	d.note("connections are captured only at ports that the policy names; everything else is refused by the kernel, without an event")
	ports := slices.Clone(c.Ports)
	slices.Sort(ports)
	ports = slices.DeleteFunc(slices.Compact(ports), func(p uint16) bool {
		return p == 0 || p == dnsPort || slices.Contains(c.Reserved, p)
	})
	if len(ports) > maxAnyIPPorts {
		d.note("the policy names %d ports, of which this kernel can capture the first %d: up to %d",
			len(ports), maxAnyIPPorts, ports[maxAnyIPPorts-1])
		ports = ports[:maxAnyIPPorts]
	}
	d.ProxyPort = freePort(proxyPort, slices.Concat([]uint16{dnsPort}, ports, c.Reserved))
	if err := silenceEcho(d.IPv6); err != nil {
		d.note("pings are answered by this machine itself (%v)", err)
	}
	return d.Listen(ports)
}

// errRules is wrapped by every error of applyRules: the same errno from a listener
// says nothing about nftables.
var errRules = errors.New("install the capture rules")

// applyRules installs the capture rules, with a record of refusals if the kernel
// can keep one.
func (d *Doors) applyRules(transparent uint16) error {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return fmt.Errorf("%w: open nftables: %w", errRules, err)
	}
	defer c.Close()
	refusals, logErr := OpenRefusals()
	if logErr == nil {
		if logErr = install(c, transparent, true); logErr == nil {
			d.Refusals = refusals
			return nil
		}
		refusals.Close()
	}
	// Again without the record: what is missing may be only that.
	if err := install(c, transparent, false); err != nil {
		return fmt.Errorf("%w: %w", errRules, err)
	}
	d.note("this kernel can't record refused packets (%v): UDP, ICMP and other protocols are refused without an event", logErr)
	return nil
}

// Listen opens the doors. transparent are the ports for captured TCP.
func (d *Doors) Listen(transparent []uint16) error {
	var err error
	open := func(make func(unix.Sockaddr) (*os.File, error), at unix.Sockaddr) (f *os.File) {
		if err == nil {
			f, err = make(at)
		}
		return f
	}
	d.DNSUDP = open(listenUDP, everywhere(d.IPv6, dnsPort))
	d.DNSTCP = open(listenTCP, everywhere(d.IPv6, dnsPort))
	d.Proxy = open(listenTCP, loopback4(d.ProxyPort))
	for _, port := range transparent {
		if f := open(listenTCP, everywhere(d.IPv6, port)); f != nil {
			d.Transparent = append(d.Transparent, f)
		}
	}
	return err
}

// freePort reports the first port from want on that is not taken; 0 (the kernel
// chooses) if there is none.
func freePort(want uint16, taken []uint16) uint16 {
	used := map[uint16]bool{0: true}
	for _, port := range taken {
		used[port] = true
	}
	for i := range 1 << 16 {
		if port := want + uint16(i); !used[port] { // goes round
			return port
		}
	}
	return 0
}

// silenceEcho keeps the kernel from answering pings, for want of a rule.
func silenceEcho(ipv6 bool) error {
	err := os.WriteFile("/proc/sys/net/ipv4/icmp_echo_ignore_all", []byte("1"), 0)
	if ipv6 {
		err = errors.Join(err, os.WriteFile("/proc/sys/net/ipv6/icmp/echo_ignore_all", []byte("1"), 0))
	}
	return err
}

// ListenLoopback listens at port on 127.0.0.1 and, if the kernel has IPv6, on
// ::1, in the calling thread's namespace: for a service that seems local inside.
// The thread is as for Link. The caller closes the files.
func ListenLoopback(port uint16) ([]*os.File, error) {
	f4, err := listenTCP(loopback4(port))
	if err != nil {
		return nil, err
	}
	f6, err := listenTCP(loopback6(port))
	switch {
	case err == nil:
		return []*os.File{f4, f6}, nil
	case errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL):
		return []*os.File{f4}, nil
	default:
		f4.Close()
		return nil, err
	}
}
