package files

import "strings"

// index finds the anchors that may cover a name without trying each: a start asks
// about some hundred names, and the list alone has as many anchors. The zero index
// finds none.
type index struct {
	plain    map[string]int32 // by path: the last anchor for it
	floating map[string]int32 // by the first name of a pattern for any depth, "**/NAME/...": the last of them
	before   []int32          // of each anchor: the one before it under the same key; none: there is none
	others   []int32          // patterns that must be tried on every name
}

// none is what no anchor has for its number.
const none = -1

func newIndex(anchors []Anchor) index {
	x := index{
		plain: make(map[string]int32, len(anchors)), floating: map[string]int32{}, before: make([]int32, len(anchors)),
	}
	for i := range anchors {
		a, at := &anchors[i], int32(i) // #nosec G115 -- a policy has not that many rules
		keys, key := x.plain, a.Path
		if a.pattern {
			keys, key = x.floating, a.floats()
			if key == "" {
				x.others = append(x.others, at)
				continue
			}
		}
		x.before[i] = none
		if last, ok := keys[key]; ok {
			x.before[i] = last
		}
		keys[key] = at
	}
	return x
}

// floats is NAME of a pattern "**/NAME/..."; "": it is another pattern.
func (a *Anchor) floats() string {
	if len(a.segs) < 2 || a.segs[0] != "**" || isPattern(a.segs[1]) {
		return ""
	}
	return a.segs[1]
}

// covering calls see for each anchor that covers name, with the number of
// directories that it covers of it; for an anchor that does so in more than one way,
// once for each. segs are name's.
func (g *Gate) covering(name string, segs []string, see func(at int32, depth int)) {
	x := &g.index
	under := func(last int32, ok bool, depth int) {
		for at := last; ok && at != none; at = x.before[at] {
			see(at, depth)
		}
	}
	last, ok := x.plain["/"]
	under(last, ok, 0)
	end := 0
	for i, seg := range segs {
		end += 1 + len(seg)
		last, ok = x.plain[name[:end]]
		under(last, ok, i+1)
		if len(x.floating) == 0 {
			continue
		}
		last, ok = x.floating[seg]
		for at := last; ok && at != none; at = x.before[at] {
			if n := match(g.anchors[at].segs[1:], segs, i); n >= 0 {
				see(at, n)
			}
		}
	}
	for _, at := range x.others {
		if a := &g.anchors[at]; strings.Contains(name, a.must) {
			if n := match(a.segs, segs, 0); n >= 0 {
				see(at, n)
			}
		}
	}
}
