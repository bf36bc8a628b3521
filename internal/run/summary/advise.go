package summary

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// wideLine is where a line of flags is broken, in columns.
const wideLine = 100

// advice is what to type, by how much thought it takes first.
type advice struct {
	rules   []*total // ready to paste
	unknown []*total // a name whose port is not known
	bare    []*total // addresses without a name
	private []*total // names of a private network
	special []*total // other addresses that are not the Internet's
	here    []*total // names that people give this machine
	raw     []*total // something else than TLS or HTTP where that is due
}

// sorted sorts list. Private and special addresses stand apart: a program that
// probes the local network must not get its way by a paste. So do addresses without
// a name, of which those tried most often come first: programs that talk to peers,
// or scan, try any number; and raw: rules, under which nothing is looked at.
func sorted(list []*total) advice {
	var a advice
	for _, t := range list {
		switch {
		case ofThisMachine(t.host.Name()):
			a.here = append(a.here, t)
		case t.suggest == "":
		case strings.HasPrefix(t.suggest, "raw:"):
			a.raw = append(a.raw, t)
		case t.reason == policy.ReasonIPProhibited && t.host.Name() != "" && !t.addr.IsValid():
			// A rule for the name is there, and another one changes nothing.
		case t.reason == policy.ReasonIPProhibited && t.host.Name() != "" && inNetwork(t.addr):
			a.private = append(a.private, t)
		case t.reason == policy.ReasonIPProhibited:
			a.special = append(a.special, t)
		case t.port == 0 && t.host.Name() != "":
			a.unknown = append(a.unknown, t)
		case t.host.Addr().IsValid():
			a.bare = append(a.bare, t)
		default:
			a.rules = append(a.rules, t)
		}
	}
	often := func(x, y *total) int { return cmp.Compare(y.count, x.count) }
	slices.SortStableFunc(a.bare, often)
	slices.SortStableFunc(a.special, often)
	return a
}

// advise prints what would allow list, ready to paste where that is safe.
func (b *page) advise(title string, list []*total) {
	a := sorted(list)
	rule := func(t *total) string { return t.suggest }
	b.flags(title, a.rules, maxSuggestions, rule, spell)
	b.flags("Only the name was asked for; put the port in place of PORT (443 for HTTPS):", a.unknown, maxSuggestions, func(t *total) string { return t.suggest + policyflags.UnknownPort }, spell)
	b.flags("Addresses without a name, to allow if you know whose they are:", a.bare, maxAddresses, rule, spell)
	b.flags("Servers of a private network. If you know them, give their addresses, or name the network under intranet: in a policy file:", a.private, maxAddresses, func(t *total) string {
		return "--host " + t.host.Name() + "=" + t.addr.String()
	}, asFlags)
	b.flags("Private or special addresses, to allow only if you mean it:", a.special, maxAddresses, rule, spell)
	b.flags("A server of this machine is "+gateName+":PORT inside. Let the program use that name, and add:", a.here, maxAddresses, hostPort, asFlags)
	b.flags("These did not speak TLS on port 443, or HTTP on port 80. If you expect another protocol there, which is then not looked at:", a.raw, maxAddresses, rule, spell)
}

// gateName is the name inside of this machine's loopback.
const gateName = "host.internal"

// ofThisMachine reports whether people give name to the machine that they work at. No
// rule helps: inside there is no such host.
func ofThisMachine(name string) bool {
	return name == "host.docker.internal" || name == "host.containers.internal" || name == gateName
}

// hostPort is the flag that opens a port of this machine.
func hostPort(t *total) string {
	if t.port == 0 {
		return "--host-port PORT"
	}
	return "--host-port " + strconv.Itoa(int(t.port))
}

// flags prints the flags for list under title, each once.
func (b *page) flags(title string, list []*total, most int, of func(*total) string, spelled func([]string) []string) {
	var words []string
	seen := make(map[string]bool)
	for _, t := range list {
		if w := of(t); !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return
	}
	rest := len(words) - most
	words = words[:min(len(words), most)]
	fmt.Fprintf(b, "%s\n  %s\n", title, strings.Join(spelled(words), " \\\n  "))
	if rest > 0 {
		fmt.Fprintf(b, "  and %d more: see --events FILE\n", rest)
	}
}

// spell spells rules as flags, in lines of a bearable length.
func spell(rules []string) []string {
	var lines []string
	for len(rules) > 0 {
		n := 1
		for n < len(rules) && len(policyflags.Spell(rules[:n+1])) <= wideLine {
			n++
		}
		lines = append(lines, policyflags.Spell(rules[:n]))
		rules = rules[n:]
	}
	return lines
}

// asFlags is spell for words that are flags already.
func asFlags(words []string) []string {
	var lines []string
	for _, w := range words {
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(w) <= wideLine {
			lines[n-1] += " " + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}

// inNetwork reports whether a is an address of somebody's private network.
func inNetwork(a netip.Addr) bool {
	switch policy.ClassifyAddr(a) {
	case "private_use", "unique_local", "shared_address_space":
		return true
	}
	return false
}

// addressWords says what kind of address a is.
func addressWords(a netip.Addr) string {
	switch class := policy.ClassifyAddr(a); {
	case inNetwork(a):
		return "an address of a private network, which no rule names"
	case class == "":
		return "this machine's own address, which no rule names"
	default:
		return "a special address (" + class + "), which no rule names"
	}
}
