package files

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed default.txt
var defaultText string

// Of rules for one path: what somebody wrote, then what the agent that runs logs
// in with, then what runs later or is secret, then the rest of the list.
const (
	orderList = iota
	orderGuard
	orderLogin
	orderWritten
)

type builder struct {
	place Place
	home  Home
	out   []Anchor
	base  int     // how many of them are not somebody's
	own   Section // what somebody wrote
	wrong []error
}

// builtInGate is made of the rules that nobody wrote.
func (b *builder) builtInGate() *Gate {
	own := *b
	own.out, own.own = b.out[:b.base:b.base], Section{}
	return own.gate()
}

// gate is made of the rules so far.
func (b *builder) gate() *Gate {
	places := make([]int, len(b.out)) // moving anchors costs more than the rest of this package
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(i, j int) int {
		x, y := &b.out[i], &b.out[j]
		return cmp.Or(x.depth-y.depth, x.order-y.order, i-j)
	})
	all := make([]Anchor, len(places))
	for to, from := range places {
		all[to] = b.out[from]
	}
	g := &Gate{anchors: all, index: newIndex(all)}
	if b.home != HomePrivate && len(b.own.Hide) == 0 {
		return g // no directory is hidden in which the list has more
	}
	g.anchors = slices.DeleteFunc(slices.Clone(all), func(a Anchor) bool {
		return a.Reason == RunsLater && !a.Glob() && g.Decide(a.Path).Access == Hidden
	})
	g.index = newIndex(g.anchors)
	return g
}

func (b *builder) written(rules []Rule, a Access) {
	for _, r := range rules {
		if err := Check(r.Path); err != nil {
			b.wrong = append(b.wrong, fmt.Errorf("%s: %w", r.At, err))
			continue
		}
		if err := b.planted(r, a); err != nil {
			b.wrong = append(b.wrong, fmt.Errorf("%s: %w", r.At, err))
			continue
		}
		b.add(orderWritten+int(ReadWrite-a), r, Decision{Access: a, Reason: Named})
	}
}

// planted is an error if r would open a file because of a link that a program
// could have made.
//
// Threat: a program leaves a link to ~/.ssh where the next run is given --write
// build -> a rule whose path lies where programs may write opens nothing beyond it
// by a link; the person names what the link leads to. Left over: a link that is
// made between this look and the mount, by another run in the same directory.
func (b *builder) planted(r Rule, a Access) error {
	p, pattern, ok := b.locate(r.Path)
	if !ok {
		return fmt.Errorf("path %q: there is no home directory", r.Path)
	}
	if b.place.Resolve == nil || pattern || r.Path == "." {
		return nil
	}
	real := b.place.Resolve(p)
	if real == p {
		return nil
	}
	base := b.builtInGate()
	if base.Decide(real).Access >= a {
		return nil
	}
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		d := base.Decide(dir) // what is temporary is not the machine's
		if d.Access == ReadWrite && d.Reason != Temporary || b.letsWrite(dir) {
			return fmt.Errorf("path %q leads to %s by a link that a program could have made: name %s itself, if you mean it", r.Path, real, real)
		}
	}
	return nil
}

// letsWrite reports whether a rule that somebody wrote, wherever it leads, lets the
// program write in dir.
func (b *builder) letsWrite(dir string) bool {
	return slices.ContainsFunc(b.own.Write, func(r Rule) bool {
		p, pattern, ok := b.locate(r.Path)
		a := anchorAt(p, pattern)
		return ok && a.covers(dir, split(dir)) >= 0
	})
}

// builtIn adds the list that is part of the program.
func (b *builder) builtIn() {
	for line := range strings.Lines(defaultText) {
		line, _, _ = strings.Cut(line, "#")
		kind, p, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		p, commands, _ := strings.Cut(strings.TrimSpace(p), " ")
		r := Rule{Path: p, At: "built in"}
		switch kind {
		case "write":
			b.writable(r, commands)
		case "read":
			b.add(orderList, r, b.readable(r.Path))
		case "secret":
			b.add(orderGuard, r, Decision{Access: Hidden, Reason: Credential})
		case "later":
			b.add(orderGuard, r, Decision{Access: ReadOnly, Reason: RunsLater})
		case "stays":
			if b.place.Elsewhere {
				b.add(orderGuard, r, Decision{Access: Hidden, Reason: Credential})
			}
		}
	}
}

// writable files a "write" line. The working directory was chosen by a person,
// so it counts as written. Started in "/", a program has no working directory of
// its own: the machine stays read-only.
func (b *builder) writable(r Rule, commands string) {
	d := Decision{Access: ReadWrite, Reason: b.plainReason(r.Path)}
	switch {
	case r.Path != ".":
		n := len(b.out)
		b.add(orderList, r, d)
		if len(b.out) > n && commands != "" {
			b.out[n].Commands = strings.Split(commands, ",")
		}
	case b.place.Workspace != "/":
		b.add(orderWritten, r, d)
	}
}

// readable is the Access of a "read" line: of the home directory, what Home says.
func (b *builder) readable(p string) Decision {
	d := Decision{Access: ReadOnly, Reason: b.plainReason(p)}
	if d.Reason == State { // it is opened for reading inside a secret, and no cache
		d.Reason = HomeDir
	}
	if b.place.Elsewhere && (p == "~" || p == "/") {
		d.Access = Hidden // that machine has its own
		return d
	}
	if p == "~" {
		switch b.home {
		case HomeReadWrite:
			d.Access = ReadWrite
		case HomePrivate:
			d.Access = Hidden
		case HomeUnset, HomeReadOnly:
		}
	}
	return d
}

func (b *builder) plainReason(p string) Reason {
	switch {
	case p == ".":
		return Workspace
	case p == "~":
		return HomeDir
	case strings.HasPrefix(p, "~/"):
		return State
	case p == "/":
		return System
	}
	return Temporary
}

// add files one rule. Rules about the home directory are left out if there is
// none, those of the list that open something also if the home directory is private.
func (b *builder) add(order int, r Rule, d Decision) {
	p, pattern, ok := b.locate(r.Path)
	if !ok || b.home == HomePrivate && strings.HasPrefix(r.Path, "~/") && (order == orderList || order == orderLogin) {
		return
	}
	if order >= orderWritten && r.Path != "." && b.place.Resolve != nil && !pattern {
		p = b.place.Resolve(p)
	}
	d.Rule = r
	a := anchorAt(p, pattern)
	a.Decision, a.order = d, order
	b.out = append(b.out, a)
}

func anchorAt(p string, pattern bool) Anchor {
	a := Anchor{Path: p, pattern: pattern}
	if p != "/" {
		a.depth = strings.Count(p, "/")
	}
	if !pattern {
		return a
	}
	a.segs = split(p)
	a.depth = len(a.segs)
	for _, seg := range a.segs {
		if !isPattern(seg) && len(seg) > len(a.must) {
			a.must = seg
		}
	}
	return a
}

// locate is where the path of a rule lies, and whether it is a pattern there. Not
// ok: it lies below a home directory that is not there.
func (b *builder) locate(p string) (at string, pattern, ok bool) {
	base, rest := "/", p
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		if b.place.Home == "" {
			return "", false, false
		}
		base, rest = b.place.Home, p[1:]
	case strings.HasPrefix(p, "**/"):
		return p, true, true
	case !path.IsAbs(p):
		base = b.place.Workspace
	}
	if plain, ok := unescape(rest); ok {
		return path.Join(base, plain), false, true
	}
	return path.Join(Literal(base), rest), true, true
}

// unescape takes the backslashes out of a path that is no pattern; not ok: it is
// one.
func unescape(p string) (plain string, ok bool) {
	if !isPattern(p) {
		return p, true
	}
	var out strings.Builder
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(p) {
				return "", false
			}
		}
		out.WriteByte(p[i])
	}
	return out.String(), true
}
