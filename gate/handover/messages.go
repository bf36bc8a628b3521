package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"egressd/policy"
)

// hello is what a launcher asks for.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`

	Session   string             `json:"session"` // what every event calls the run
	Isolation string             `json:"isolation"`
	ArgvHash  string             `json:"argv_hash"`
	Documents []*policy.Document `json:"documents"`
	Secrets   []Secret           `json:"secrets,omitempty"`
	HostPorts []uint16           `json:"host_ports,omitempty"` // that the person asked for
	Own       []netip.AddrPort   `json:"own,omitempty"`        // listeners of the launcher's: never dialled
	Asks      bool               `json:"asks,omitempty"`       // a person can be asked about what no rule covers
}

// Secret is one secret of a run: its placeholder inside, and its value.
type Secret struct {
	Env         string `json:"env"`
	Placeholder string `json:"placeholder"`
	Value       string `json:"value"`
}

// String keeps the value out of logs.
func (s Secret) String() string { return "secret " + s.Env }

// GoString keeps the value out of %#v.
func (s Secret) GoString() string { return s.String() }

// acceptance is the daemon's answer to a hello that it accepts.
type acceptance struct {
	Version string `json:"version"`
	Digest  string `json:"digest"`
	CA      []byte `json:"ca,omitempty"` // PEM: what programs inside must trust besides the launcher's own roots
}

// refusal is the daemon's answer to a hello that it refuses.
type refusal struct {
	Why string `json:"why"`
}

// RefusedError is a refusal of the daemon.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "egressd refuses the session: " + e.Why }

// question is a flow that a person may allow.
type question struct {
	Host      policy.Host `json:"host"`
	Port      uint16      `json:"port"`
	OtherPort bool        `json:"other_port,omitempty"` // rules name the host, but not this port
}

// end is the daemon's last message.
type end struct {
	Lost uint64 `json:"lost,omitempty"` // events that found no room
	Why  string `json:"why,omitempty"`  // what ended the handover; "": the launcher did
}

// Bounds of the contents of a hello.
const (
	maxSecrets = 256
	maxListed  = 1024 // ports and addresses
	idBytes    = 64
)

// parseHello reads a hello. The error for one of another protocol version says
// what to do, whatever else the hello holds.
func parseHello(body []byte, version string) (*hello, error) {
	var first struct {
		Protocol int    `json:"protocol"`
		Version  string `json:"version"`
	}
	if err := json.Unmarshal(body, &first); err != nil {
		return nil, errForeign
	}
	if first.Protocol != Protocol {
		return nil, fmt.Errorf("this egressd (%s) speaks session protocol %d, your launch (%s) speaks %d: use launch and egressd of one release",
			version, Protocol, printable(first.Version), first.Protocol)
	}
	h := new(hello)
	if err := strictJSON(body, h); err != nil {
		return nil, err
	}
	return h, h.check()
}

func (h *hello) check() error {
	switch {
	case !isID(h.Session):
		return errors.New("the session's word is not 1 to 64 letters, digits, - or _")
	case h.Isolation != "netns":
		return fmt.Errorf("isolation %q is not one that can be handed over", printable(h.Isolation))
	case len(h.ArgvHash) != 64 || strings.Trim(h.ArgvHash, "0123456789abcdef") != "":
		return errors.New("the command's hash is not a SHA-256 in hex")
	case len(h.Secrets) > maxSecrets || len(h.HostPorts) > maxListed || len(h.Own) > maxListed:
		return errors.New("too many secrets, ports or listeners")
	}
	for _, s := range h.Secrets {
		if s.Placeholder == "" || s.Value == "" {
			return fmt.Errorf("secret %s has no placeholder or no value", printable(s.Env))
		}
		if strings.ContainsFunc(s.Value, unicode.IsControl) {
			return fmt.Errorf("secret %s holds a control byte, which no header can hold", printable(s.Env))
		}
	}
	return nil
}

// printable is s made fit for a message: printable and short.
func printable(s string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return clean[:min(len(clean), idBytes)]
}

func isID(s string) bool {
	return s != "" && len(s) <= idBytes &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
