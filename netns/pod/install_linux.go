package pod

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
	"egressd/netns/nft"
)

// Install installs the rules in the calling thread's network namespace, in
// one transaction that replaces those of an earlier call: at no moment are
// there none. It reads them back before it reports success. It needs
// CAP_NET_ADMIN over the namespace ([ErrNotPermitted]).
//
// A namespace without any interface that is up is given routes to itself, so
// that what is sent in it arrives at the doors.
func (r Rules) Install() (Result, error) {
	runtime.LockOSThread() // the namespace is the thread's
	defer runtime.UnlockOSThread()
	if err := r.Validate(); err != nil {
		return Result{}, err
	}
	if err := r.mayInstall(); err != nil {
		return Result{}, err
	}
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return Result{}, explain(err)
	}
	defer c.Close()
	all, err := devices()
	if err != nil {
		return Result{}, err
	}
	var result Result
	names, below := outermost(all)
	if result, err = r.install(c, names); err != nil {
		return Result{}, explain(err)
	}
	// After the rules: routes first would be a way to nowhere, but unwatched.
	if result.Isolated, err = isolate(all); err != nil {
		return Result{}, explain(err)
	}
	if len(below) > 0 {
		result.Notes = append(result.Notes, "frames that are not IP are not refused on "+strings.Join(below, ", ")+
			", which carry other interfaces: give no agent the capability NET_RAW")
	}
	return result, nil
}

// mayInstall refuses what is nearly always a mistake.
//
// Threat: a pod that shares the machine's network is captured, and every program
// of the machine loses its network -> only Rules.Machine allows that.
func (r Rules) mayInstall() error {
	wide, err := machineWide()
	if err != nil || !wide || r.Machine {
		return err
	}
	return ErrMachine
}

// install is Install for the devices, with the table for frames if the kernel
// can.
func (r Rules) install(c netlink.Conn, names []string) (Result, error) {
	var result Result
	tables := r.tables(names)
	if installed(c, tables) {
		return Result{Devices: names}, nil
	}
	before, err := r.packets().Exists(c)
	if err != nil {
		return Result{}, err
	}
	err = nft.Replace(c, tables...)
	if len(tables) > 1 && netlink.NFTAbsent(err) {
		withoutFrames := tables[:1]
		if again := nft.Replace(c, withoutFrames...); again != nil {
			return Result{}, errors.Join(err, again)
		}
		result.Notes = append(result.Notes, fmt.Sprintf(
			"this kernel can't filter frames that are not IP (%v; it needs Linux 5.16): give no agent the capability NET_RAW", err,
		))
		tables, names, err = withoutFrames, nil, nil
	}
	if err != nil {
		return Result{}, err
	}
	for _, t := range tables {
		if err := t.Verify(c); err != nil {
			return Result{}, fmt.Errorf("the kernel took the rules, but reading them back: %w", err)
		}
	}
	result.Changed, result.Replaced, result.Devices = true, before, names
	return result, nil
}

func installed(c netlink.Conn, tables []nft.Table) bool {
	for _, t := range tables {
		if t.Verify(c) != nil {
			return false
		}
	}
	return true
}

// Verify reports whether exactly these rules are installed in the calling
// thread's namespace: nil when they are.
func (r Rules) Verify() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return explain(err)
	}
	defer c.Close()
	return explain(r.packets().Verify(c))
}

// Remove removes the rules, and the routes of a namespace without a network,
// from the calling thread's namespace and reports whether there were any.
func Remove() (bool, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return false, explain(err)
	}
	defer c.Close()
	removed := false
	for _, family := range []string{"inet", "netdev"} {
		t := nft.Table{Family: family, Name: tableName}
		there, err := t.Exists(c)
		if err != nil {
			return removed, explain(err)
		}
		if !there {
			continue
		}
		if err := t.Remove(c); err != nil {
			return removed, explain(err)
		}
		removed = true
	}
	return removed, explain(unisolate())
}

// explain says whether the right is missing or the kernel's part.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w (%w)", ErrNotPermitted, err)
	case netlink.NFTAbsent(err):
		return fmt.Errorf("%w: this kernel lacks a part of nftables (%w)", ErrNotSupported, err)
	default:
		return err
	}
}
