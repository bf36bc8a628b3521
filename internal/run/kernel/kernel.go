// Package kernel finds out what this machine can do for launch, and what to
// change where it can't. It tries the real thing where it can rather than
// reading settings: settings then explain what failed.
package kernel

// Finding is one thing the machine can or can't do.
type Finding struct {
	Name   string // short: "user namespaces"
	OK     bool
	Needed bool   // false: launch works without it, with less
	Detail string // what was found and, when not OK, what that means
	Fix    string // exact commands, one a line; "" when there is nothing to do
}

// Options says how to probe.
type Options struct {
	// Binary is the path of the launch binary, for an AppArmor profile.
	Binary string
	// Inside is the command line (program first) of a process that calls the
	// function Inside and exits. It is run in new namespaces, as launch would.
	// Nil: what can only be seen from inside is left out.
	Inside []string
}

// Prepared is what preparing a namespace for capture achieved there.
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
	Error string `json:"error"` // why the namespace could not be prepared; "" when it was
	Proc  string `json:"proc"`  // why /proc can't be mounted; "" when it can
}
