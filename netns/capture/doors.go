package capture

import (
	"errors"
	"os"
	"time"
)

// Mode says how traffic that would leave a namespace is captured.
type Mode string

const (
	// ModeAuto is ModeNFT if the kernel can, else ModeAnyIP.
	ModeAuto Mode = ""
	// ModeNFT redirects every TCP connection with nftables and refuses every
	// other protocol, and can record what it refuses.
	ModeNFT Mode = "nft"
	// ModeAnyIP listens on every address at the ports of Config.Ports. The
	// kernel refuses other ports, without a record.
	ModeAnyIP Mode = "anyip"
)

// Config says what [Linked.Open] prepares. The zero value is the usual one.
type Config struct {
	Mode Mode

	// Ports are the TCP ports that the policy names. Only ModeAnyIP needs
	// them: each gets a listener on every address. 0 and 53 are skipped.
	Ports []uint16

	// Reserved are ports inside that the caller needs for something else: the
	// gate's own listeners do not use them.
	Reserved []uint16
}

// Doors is a prepared namespace: the sockets through which it is served. Each
// file is a plain socket, close-on-exec, that may be passed to another process
// and turned into a listener with net.FileListener, and DNSUDP into a packet
// connection with netns.PacketConn. They are blocking until then: Go's poller
// would slow down the start of a process that only passes them on.
type Doors struct {
	Proxy       *os.File   // 127.0.0.1:ProxyPort: CONNECT, HTTP, SOCKS
	Transparent []*os.File // captured TCP: one listener (nft), or one a port (anyip)
	DNSTCP      *os.File
	DNSUDP      *os.File
	Refusals    *os.File // what the rules refused, for netns.ServeRefusals; nil: not recorded

	Mode      Mode // ModeNFT or ModeAnyIP
	ProxyPort uint16
	IPv6      bool // the kernel has IPv6
	Dummy     bool // an eth0 that is up exists

	// Notes say in plain English what this kernel can't do and what that means
	// for the run. Empty: everything worked.
	Notes []string
}

// Files lists every open file of d.
func (d *Doors) Files() []*os.File {
	if d == nil {
		return nil
	}
	var files []*os.File
	for _, f := range append([]*os.File{d.Proxy, d.DNSTCP, d.DNSUDP, d.Refusals}, d.Transparent...) {
		if f != nil {
			files = append(files, f)
		}
	}
	return files
}

// Close closes every file of d.
func (d *Doors) Close() error {
	var errs []error
	for _, f := range d.Files() {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// The nfnetlink_log groups of what the rules refuse; the namespace is ours, so
// any will do.
const (
	LogGroup   = 1 // packets that are recorded
	CountGroup = 2 // packets beyond the rate: they are only counted
)

// LogPerSecond packets are recorded at most, and LogBurst at once. Beyond that
// they are refused all the same, and counted.
const (
	LogPerSecond = 100
	LogBurst     = 500
)

// CountFlush is how long the kernel collects packets of CountGroup before it
// reports them.
const CountFlush = 200 * time.Millisecond

// LogSnaplen is how many bytes of each refused packet are recorded: the IPv6
// header, a few extensions, ports.
const LogSnaplen = 128
