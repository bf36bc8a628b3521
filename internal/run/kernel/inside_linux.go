package kernel

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Inside tries what a run does in the namespaces of this process, and writes to w
// the report that Probe reads. prepare is capture.Setup, reported as this package
// spells it. The namespaces are of no other use afterwards, so Inside fails outside
// those that Probe makes, in which this process is the first.
func Inside(w io.Writer, prepare func() (Prepared, error)) error {
	if os.Getpid() != 1 {
		return errors.New("this half of doctor runs in new namespaces only: run launch doctor")
	}
	var in inside
	var err error
	if in.Prepared, err = prepare(); err != nil {
		in.Error = err.Error()
	}
	if err := mountProc(); err != nil {
		in.Proc = err.Error()
	}
	return json.NewEncoder(w).Encode(in)
}

func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

const nftModules = "sudo modprobe -a nf_tables nft_chain_nat nft_redir nft_reject_inet nft_ct nft_limit nft_log nfnetlink_log"

// capture reports how connections are captured.
func capture(in inside) Finding {
	f := Finding{Name: "capture", Needed: true}
	switch {
	case in.Error != "":
		f.Detail = "a namespace cannot be prepared: " + in.Error
		f.Fix = nftModules
	case !in.NFT:
		// It works, with less: the details say what is missing.
		f.Needed = false
		f.Detail = strings.Join(in.Notes, "; ")
		f.Fix = nftModules
	default:
		f.OK = true
		f.Detail = "nftables redirects every TCP connection and refuses other protocols"
	}
	return f
}

func refusals(in inside) Finding {
	f := Finding{Name: "record of refused packets", OK: in.Refusals, Detail: "through nfnetlink_log"}
	if !f.OK {
		f.Detail = "UDP, ICMP and other protocols are refused without an event"
		f.Fix = "sudo modprobe nfnetlink_log"
	}
	return f
}

func ipv6(in inside) Finding {
	f := Finding{Name: "IPv6", OK: in.IPv6, Detail: "captured as well"}
	if !f.OK {
		f.Detail = "absent: programs inside see a machine without it"
	}
	return f
}

func dummy(in inside) Finding {
	f := Finding{Name: "dummy interface", OK: in.Dummy, Detail: "programs inside see an interface that is up"}
	if !f.OK {
		f.Detail = "absent: programs inside see only lo, which a few take for being offline"
		f.Fix = "sudo modprobe dummy"
	}
	return f
}
