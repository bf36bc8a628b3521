package files

import (
	"fmt"
	"path"
	"strings"
)

// Place is the machine a Section is applied to.
type Place struct {
	Workspace string   // the working directory: absolute, clean, without links
	Home      string   // the home directory, likewise; "": there is none
	State     []string // what the program must write, as "~/.claude": from the agents' data
	Login     []string // credentials of the program's own, as "~/.claude/.credentials.json": likewise
	Elsewhere bool     // the program runs on another machine, and sees a copy of the workspace
	Secret    []string // hidden like credentials, absolute: the launcher's own records, wherever they are

	// Resolve reports where an absolute, clean path leads when its links are
	// followed. Rules that somebody wrote are put there, patterns are not. Nil:
	// paths lead to themselves.
	Resolve func(path string) string
}

// Reason says why a name has its Access.
type Reason uint8

// The reasons. The zero Reason belongs to a nil Gate, which hides everything.
const (
	NoPolicy   Reason = iota
	Named             // a rule that somebody wrote covers it
	Workspace         // below the working directory
	HomeDir           // below the home directory
	System            // the rest of the machine
	Temporary         // private to the run
	State             // caches, and what agents must write
	Credential        // keeps a secret
	RunsLater         // obeyed outside, after the run
	Socket            // a unix socket that somebody outside serves
)

var reasonWords = [...]string{
	NoPolicy: "no_policy", Named: "named", Workspace: "workspace", HomeDir: "home", System: "system", Temporary: "temporary",
	State: "state", Credential: "credential", RunsLater: "runs_later",
	Socket: "socket",
}

// String is the word in events and messages.
func (r Reason) String() string {
	if int(r) < len(reasonWords) {
		return reasonWords[r]
	}
	return "unknown_reason"
}

// Decision is the answer for one name.
type Decision struct {
	Access Access
	Reason Reason
	Rule   Rule // what decided, as it was written
}

// Anchor is one rule at its place in the file system, for a tier that enforces
// it. Path may be a pattern of path.Match, with "**" for any number of
// directories.
type Anchor struct {
	Path string
	Decision
	Commands []string // who needs the directory, to be made if it is not there; nil: nobody

	segs    []string // of a pattern
	depth   int      // directories of Path
	must    string   // of a pattern: what stands in every name that it covers
	pattern bool
	order   int // among rules for one path the higher wins
}

// Glob reports whether Path is a pattern.
func (a *Anchor) Glob() bool { return a.pattern }

func isPattern(p string) bool { return strings.ContainsAny(p, `*?[\`) }

// Gate is a Section at a Place: immutable, safe for concurrent use. A nil Gate
// hides everything.
type Gate struct {
	anchors []Anchor // shallow before deep
	index   index    // of them
	ceiling *Gate
}

// In applies s to a place. Errors name the rule.
func (s Section) In(pl Place) (*Gate, error) {
	if !path.IsAbs(pl.Workspace) || path.Clean(pl.Workspace) != pl.Workspace {
		return nil, fmt.Errorf("files: working directory %q is not an absolute, clean path", pl.Workspace)
	}
	if pl.Home != "" && (!path.IsAbs(pl.Home) || path.Clean(pl.Home) != pl.Home) {
		return nil, fmt.Errorf("files: home directory %q is not an absolute, clean path", pl.Home)
	}
	b := &builder{place: pl, home: s.Home, out: make([]Anchor, 0, 320)}
	b.builtIn()
	for _, p := range pl.Secret {
		b.add(orderGuard, Rule{Path: Literal(p), At: "built in"}, Decision{Access: Hidden, Reason: Credential})
	}
	for _, p := range pl.State {
		b.add(orderList, Rule{Path: Literal(p), At: "agent"}, Decision{Access: ReadWrite, Reason: State})
	}
	for _, p := range pl.Login {
		b.add(orderLogin, Rule{Path: Literal(p), At: "agent"}, Decision{Access: ReadWrite, Reason: State})
	}
	b.base, b.own = len(b.out), s
	for _, list := range s.Lists() {
		b.written(list.Rules, list.Access)
	}
	if len(b.wrong) > 0 {
		return nil, b.wrong[0]
	}
	return b.gate(), nil
}

// Under reports g narrowed by ceiling: of each name, the smaller Access counts.
// A nil g or ceiling hides everything.
func (g *Gate) Under(ceiling *Gate) *Gate {
	if g == nil || ceiling == nil {
		return nil
	}
	own := *g
	if g.ceiling != nil {
		ceiling = g.ceiling.Under(ceiling)
	}
	own.ceiling = ceiling
	return &own
}

// Anchors lists the rules, shallow paths before deep ones; later ones win. The list
// is the gate's own: it is only to be read.
func (g *Gate) Anchors() []Anchor {
	if g == nil {
		return nil
	}
	return g.anchors
}

// Decide reports what may be done with the file of that name, which must be
// absolute, clean and without links; any other name is hidden.
//
// The deepest rule decides, with two bounds. A rule about files that run later
// makes nothing visible, and below what somebody hid only somebody's rule does.
func (g *Gate) Decide(name string) Decision {
	if g == nil || !path.IsAbs(name) || path.Clean(name) != name {
		return Decision{}
	}
	var room [32]string
	segs := appendSplit(room[:0], name)
	var best, written, later deepest
	g.covering(name, segs, func(at int32, depth int) {
		a := &g.anchors[at]
		if a.Reason == RunsLater {
			later.take(a, at, depth)
			return
		}
		best.take(a, at, depth)
		if a.order >= orderWritten {
			written.take(a, at, depth)
		}
	})
	if best.Anchor == nil {
		return Decision{}
	}
	d := best.Decision
	if written.Anchor != nil && written.Access == Hidden && best.order < orderWritten {
		d = written.Decision
	}
	if later.beats(best) && d.Access > Hidden {
		d = later.Decision
	}
	if g.ceiling != nil {
		if c := g.ceiling.Decide(name); c.Access < d.Access {
			d = c
		}
	}
	return d
}

// deepest is the deepest of the rules it took. The zero deepest has none.
type deepest struct {
	*Anchor
	at    int32 // its number in the Gate
	depth int
}

// take keeps a, which covers so many directories of the name, unless it has a
// better one. Of two that are alike the one with the higher number is.
func (b *deepest) take(a *Anchor, at int32, depth int) {
	next := deepest{a, at, depth}
	if next.beats(*b) && (b.Anchor == nil || at > b.at || !b.beats(next)) {
		*b = next
	}
}

// beats reports whether b is deeper than other, or as deep and not less.
func (b deepest) beats(other deepest) bool {
	switch {
	case b.Anchor == nil || other.Anchor == nil:
		return b.Anchor != nil
	case b.depth != other.depth:
		return b.depth > other.depth
	}
	return b.order >= other.order
}

// covers reports how deep in name the path that a covers is, -1 if it covers
// none.
func (a *Anchor) covers(name string, segs []string) int {
	if !a.pattern { // most are not: a start asks about hundreds of names
		if rest, ok := strings.CutPrefix(name, a.Path); ok && (rest == "" || rest[0] == '/' || a.Path == "/") {
			return a.depth
		}
		return -1
	}
	if !strings.Contains(name, a.must) {
		return -1
	}
	return match(a.segs, segs, 0)
}

// match reports the greatest depth at which a prefix of name[from:] matches pat,
// counted in segments of name; -1: none.
func match(pat, name []string, from int) int {
	if len(pat) == 0 {
		return from
	}
	if pat[0] == "**" {
		best := -1
		for i := from; i <= len(name); i++ {
			best = max(best, match(pat[1:], name, i))
		}
		return best
	}
	if from >= len(name) {
		return -1
	}
	if pat[0] != name[from] {
		if !isPattern(pat[0]) {
			return -1
		}
		if ok, err := path.Match(pat[0], name[from]); err != nil || !ok {
			return -1
		}
	}
	return match(pat[1:], name, from+1)
}

func split(p string) []string { return appendSplit(nil, p) }

func appendSplit(out []string, p string) []string {
	for p = strings.Trim(p, "/"); p != ""; {
		seg, rest, _ := strings.Cut(p, "/")
		out, p = append(out, seg), rest
	}
	return out
}
