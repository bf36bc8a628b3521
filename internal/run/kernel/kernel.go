// Package kernel finds out what the kernel of this machine can do for launch, and
// what to change.
//
//	for _, f := range kernel.Probe(ctx, kernel.Options{Binary: self}) {
//		fmt.Print(f.Text(paint))
//	}
//
// It tries the real thing rather than reading settings, wherever that is possible;
// settings then explain what failed.
package kernel

import (
	"fmt"
	"strings"

	"egressd/internal/cli"
)

// Finding is one thing that the machine can or cannot do.
type Finding struct {
	Name   string `json:"name"` // short: "user namespaces"
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`        // false: launch works without it, with less
	Detail string `json:"detail"`        // what was found and, if not OK, what that means
	Fix    string `json:"fix,omitempty"` // exact commands, one a line; "" if there is nothing to do
}

// Text spells a finding for a terminal, with its fix.
func (f Finding) Text(p cli.Paint) string {
	word := p.Good("ok   ")
	switch {
	case !f.OK && f.Needed:
		word = p.Bad("FAIL ")
	case !f.OK:
		word = p.Warn("note ")
	}
	text := fmt.Sprintf("%s %s: %s\n", word, f.Name, f.Detail)
	if f.Fix != "" && !f.OK {
		text += "      fix:\n        " + strings.ReplaceAll(strings.TrimSpace(f.Fix), "\n", "\n        ") + "\n"
	}
	return text
}

// Options is how to probe.
type Options struct {
	// Binary is the path of the launch binary, for an AppArmor profile.
	Binary string
	// Inside is the command line of a process that calls the function Inside and
	// exits. It is run in new namespaces, as launch would. Nil: what can be seen
	// from inside only is left out.
	Inside []string
}

// Prepared is what preparing a namespace for capture achieved.
type Prepared struct {
	NFT      bool     `json:"nft"`      // nftables redirects; false: only ports that a policy names are captured
	Refusals bool     `json:"refusals"` // refused packets are recorded
	IPv6     bool     `json:"ipv6"`
	Dummy    bool     `json:"dummy"` // an eth0 that is up
	Notes    []string `json:"notes"` // what is missing, and what that means
}

// inside is what a process in new namespaces reports, as JSON.
type inside struct {
	Prepared
	Error string `json:"error"` // why the namespace could not be prepared; "" if it was
	Proc  string `json:"proc"`  // why /proc cannot be mounted; "" if it can
}
