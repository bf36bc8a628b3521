package summary

import (
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// Report is a summary for programs. Its lists are never null.
type Report struct {
	Version  int           `json:"version"` // 1
	Allowed  []Destination `json:"allowed"`
	Blocked  []Destination `json:"blocked"`
	Failed   []Destination `json:"failed"`             // allowed, and not delivered by the network
	Closed   []Destination `json:"closed"`             // by the client, before it said anything
	Audited  []Destination `json:"audited"`            // let through by --audit alone
	Files    []File        `json:"files"`              // refused
	Unlisted int           `json:"unlisted,omitempty"` // events and packets that found no room
	// PolicyFiles counted without being named, each with how far.
	PolicyFiles []string `json:"policy_files"`
}

// Destination is one line of a Report.
type Destination struct {
	Host      string `json:"host"`
	Port      uint16 `json:"port,omitempty"`     // 0: only the name was asked for
	Protocol  string `json:"protocol,omitempty"` // "": TCP
	Method    string `json:"method,omitempty"`
	Path      string `json:"path,omitempty"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes,omitempty"`
	Reason    string `json:"reason"`
	Meaning   string `json:"meaning"`
	Rule      string `json:"rule,omitempty"`    // that denied it, and its place
	Address   string `json:"address,omitempty"` // that was refused
	Suggest   string `json:"suggest,omitempty"` // flags that would allow it
	NotNeeded bool   `json:"not_needed,omitempty"`
}

// File is a refused file.
type File struct {
	Path   string `json:"path"`
	Wanted string `json:"wanted"` // read or write
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

// Report is what Write says, for programs. Nothing in it is folded or cut.
func (c *Collector) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.account()
	r := Report{
		Version: 1, Unlisted: c.unlisted + c.overflow,
		Allowed: destinations(a.allowed), Blocked: destinations(append(a.blocked, a.needless...)), Failed: destinations(a.failed),
		Closed: destinations(a.closed), Audited: destinations(a.audited), Files: []File{},
		PolicyFiles: []string{},
	}
	for _, t := range c.refusedFiles() {
		r.Files = append(r.Files, File{Path: t.path, Wanted: t.wanted.Key(), Count: t.count, Reason: t.reason.String()})
	}
	return r
}

func destinations(list []*total) []Destination {
	all := make([]Destination, 0, len(list))
	for _, t := range list {
		d := Destination{
			Host: t.host.String() + t.asked, Port: t.port, Method: t.method, Path: t.path, Count: t.count, Bytes: t.bytes,
			Reason: t.reason.String(), Meaning: explain.Meaning(t.reason), Rule: t.rule,
			NotNeeded: t.listable() && needless(t.host.Name()) != "",
		}
		if t.proto != "tcp" {
			d.Protocol = t.proto
		}
		if t.addr.IsValid() {
			d.Address = t.addr.String()
		}
		if t.suggest != "" && t.reason != policy.ReasonIPProhibited {
			d.Suggest = policyflags.Spell([]string{t.suggest})
			if t.port == 0 {
				d.Suggest += policyflags.UnknownPort
			}
		}
		all = append(all, d)
	}
	return all
}
