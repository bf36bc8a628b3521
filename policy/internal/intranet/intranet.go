// Package intranet says which names may have addresses of a private network.
//
//	wrong := intranet.Check("corp.example.com") // "": it is none
//	ok := intranet.Names{"corp.example.com"}.Has("reg.corp.example.com", addr)
package intranet

import (
	"net/netip"
	"strings"

	"egressd/policy/internal/special"
	"egressd/policy/internal/suffix"
)

// Names are the names of an intranet, each for itself and all below it.
type Names []string

// Check says why name, in canonical spelling, cannot be one of Names; "": it can.
func Check(name string) string {
	if suffix.Public(name) || suffix.Shared(name) {
		return "anybody can own a name below it"
	}
	return ""
}

// Has reports whether host is one of the names, and a an address that it may have.
//
// Threat: whoever answers for a name in the intranet, or for one like it, leads the
// gate to this machine, its link or a cloud's metadata, which hands out credentials
// -> only private networks pass (RFC 1918, RFC 4193), the clouds' own addresses in
// there do not; names match by whole labels. That a is none of this machine's own is
// the caller's to see to. Left over: every server of the private network, on ports
// that rules allow; who names a suffix means that.
func (n Names) Has(host string, a netip.Addr) bool {
	switch special.Class(a) {
	case "private_use", "unique_local":
	default:
		return false
	}
	if isCloud(a) {
		return false
	}
	for _, name := range n {
		rest, ok := strings.CutSuffix(host, name)
		if ok && (rest == "" || rest[len(rest)-1] == '.') {
			return true
		}
	}
	return false
}

// isCloud reports whether a belongs to the metadata service of a cloud: AWS's
// fd00:ec2::/32 and Google's fd20:ce::/32, which are unique local addresses.
func isCloud(a netip.Addr) bool {
	b := a.As16()
	head := [4]byte(b[:4])
	return head == [4]byte{0xfd, 0x00, 0x0e, 0xc2} || head == [4]byte{0xfd, 0x20, 0x00, 0xce}
}
