package pod

import (
	"errors"
	"fmt"
	"slices"

	"egressd/netns/nft"
)

// ErrNotSupported is returned if the platform or the kernel lacks what capture
// needs. Nothing was installed then.
var ErrNotSupported = errors.New("capture is not supported here")

// ErrNotPermitted is returned if the caller lacks CAP_NET_ADMIN over the
// namespace.
var ErrNotPermitted = errors.New("capture needs the capability NET_ADMIN over the network namespace")

// ErrMachine is returned in the machine's own namespace, unless Rules.Machine
// is set.
var ErrMachine = errors.New("this is the machine's own network, not a container's: every program on it would lose the network")

// Rules says what is captured, and which packets are exempted. The zero value
// exempts none and is not valid.
type Rules struct {
	// Users are exempted: egressd's, and those of other proxies through which
	// egressd's connections travel, such as a service mesh's.
	Users []uint32
	// Mark exempts packets with this mark (SO_MARK) instead; zero: none.
	//
	// Threat: a program with CAP_NET_RAW or CAP_NET_ADMIN can mark its own
	// packets -> nothing stops it here. Users has no such gap.
	Mark uint32

	TransparentPort uint16 // egressd's listener for captured TCP
	DNSPort         uint16 // egressd's DNS listener; 0: DNS is refused

	// Protected are ports that only the exempted may reach from inside:
	// egressd's metrics and admin listeners. Others may come from outside.
	Protected []uint16

	// Machine allows capturing the machine's own network, with all its
	// programs, rather than a container's.
	Machine bool
}

// Limits of Rules.
const (
	maxUsers     = 16
	maxProtected = 64

	// overflowID is what the kernel shows for every user that has no number in
	// a namespace (/proc/sys/kernel/overflowuid). It is also that of "nobody".
	overflowID = 65534
	noID       = 1<<32 - 1 // (uid_t)-1, which no process can have
)

// Validate reports what is wrong with r.
func (r Rules) Validate() error {
	if (len(r.Users) == 0) == (r.Mark == 0) {
		return errors.New("exempt either users or a mark: nobody else gets out")
	}
	if len(r.Users) > maxUsers || len(r.Protected) > maxProtected {
		return fmt.Errorf("at most %d exempted users and %d protected ports", maxUsers, maxProtected)
	}
	for _, id := range r.Users {
		if id == overflowID || id == noID {
			// Threat: in a user namespace every unmapped user looks like this one.
			return fmt.Errorf("user %d can't be exempted: the kernel shows it for every user that it can't name", id)
		}
	}
	if r.TransparentPort == 0 {
		return errors.New("captured connections need a port to go to")
	}
	if r.TransparentPort == dnsPort || r.DNSPort == dnsPort {
		return errors.New("port 53 is captured, so egressd can't listen there: choose another port, such as 3130")
	}
	if r.TransparentPort == r.DNSPort {
		return fmt.Errorf("port %d can't be both the transparent and the DNS port", r.DNSPort)
	}
	for _, p := range r.Protected {
		switch {
		case p == 0 || p == dnsPort:
			return fmt.Errorf("port %d can't be protected", p)
		case p == r.TransparentPort || p == r.DNSPort:
			return fmt.Errorf("port %d is a door: everybody must reach it", p)
		}
	}
	return nil
}

// Text is the rules as a script for nft -f, which replaces those that are there.
// With devices it includes the table that refuses frames of other protocols than
// IP.
func (r Rules) Text(devices []string) string {
	var text string
	for _, t := range r.tables(devices) {
		text += t.Script()
	}
	return text
}

// tables is the plan: pure and deterministic.
func (r Rules) tables(devices []string) []nft.Table {
	tables := []nft.Table{r.packets()}
	if len(devices) > 0 {
		sorted := slices.Clone(devices)
		slices.Sort(sorted)
		tables = append(tables, frames(slices.Compact(sorted)))
	}
	return tables
}

// Result says what Install did.
type Result struct {
	Changed  bool     // false: exactly these rules were there already
	Replaced bool     // other rules of ours were there
	Isolated bool     // the namespace had no network; it got routes to itself
	Devices  []string // the interfaces whose frames are judged

	// Notes say in plain English what this kernel can't do and what follows
	// from that. Empty: everything worked.
	Notes []string
}
