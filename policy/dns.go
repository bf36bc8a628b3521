package policy

import "fmt"

// DNS is the dns section. Zero: synthetic answers, the system's upstreams.
type DNS struct {
	Mode      DNSMode
	Upstreams []Entry
}

// DNSMode says how the DNS door answers for an allowed name.
type DNSMode uint8

// The modes. In both, a denied name is answered without an upstream query.
const (
	DNSUnset     DNSMode = iota // not set: the next document's mode, at last DNSSynthetic
	DNSSynthetic                // an address of the gate's own; no query leaves
	DNSForward                  // the upstream's answer
)

// parseDNSMode reads "synthetic" or "forward"; the empty string is DNSUnset.
func parseDNSMode(s string) (DNSMode, error) {
	switch s {
	case "":
		return DNSUnset, nil
	case "synthetic":
		return DNSSynthetic, nil
	case "forward":
		return DNSForward, nil
	}
	return DNSUnset, fmt.Errorf("dns mode %q is not known: write synthetic or forward", s)
}

// String is the mode as policy text spells it, "" for DNSUnset.
func (m DNSMode) String() string {
	switch m {
	case DNSUnset:
		return ""
	case DNSSynthetic:
		return "synthetic"
	case DNSForward:
		return "forward"
	}
	return fmt.Sprintf("DNSMode(%d)", uint8(m))
}

// MarshalText spells the mode for documents that travel as JSON.
func (m DNSMode) MarshalText() ([]byte, error) {
	if m > DNSForward {
		return nil, fmt.Errorf("policy: %s", m)
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads "synthetic" or "forward"; empty text is DNSUnset,
// any other word an error.
func (m *DNSMode) UnmarshalText(text []byte) (err error) {
	*m, err = parseDNSMode(string(text))
	return err
}
