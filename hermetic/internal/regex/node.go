package regex

// op is what a node of the syntax tree is.
type op uint8

const (
	opEmpty  op = iota
	opNever     // matches nothing
	opRune      // r
	opSet       // one character of set
	opCat       // subs, one after the other
	opAlt       // one of subs
	opRepeat    // subs[0], min to max times; max -1: any
	opGroup     // subs[0], remembered as group n
	opBack      // what group n has matched
	opAssert    // a place: n is an assertion
	opLook      // subs[0] matches here (behind: up to here), or not (negated)
	opAtomic    // subs[0], and what it took is not given back
	opKeep      // \K
)

// assertion is a place in the text.
type assertion int

const (
	lineStart assertion = iota // ^
	lineEnd                    // $
	textStart                  // \`
	textEnd                    // \'
	perlEnd                    // \Z, and $ in Perl: also before the last newline
	wordEdge                   // \b
	notWordEdge
	wordStart // \<
	wordEnd   // \>
)

type node struct {
	op       op
	subs     []*node
	r        rune
	set      *set
	min, max int
	n        int
	lazy     bool
	behind   bool
	negated  bool
	fold     bool // opBack: compare in both cases
}

func alternate(subs []*node) *node {
	switch len(subs) {
	case 0:
		return &node{op: opNever}
	case 1:
		return subs[0]
	}
	return &node{op: opAlt, subs: subs}
}

func concat(subs []*node) *node {
	switch len(subs) {
	case 0:
		return &node{op: opEmpty}
	case 1:
		return subs[0]
	}
	return &node{op: opCat, subs: subs}
}

// nullable reports whether n can match the empty text.
func nullable(n *node) bool {
	switch n.op {
	case opNever, opRune, opSet:
		return false
	case opCat:
		for _, s := range n.subs {
			if !nullable(s) {
				return false
			}
		}
		return true
	case opAlt:
		for _, s := range n.subs {
			if nullable(s) {
				return true
			}
		}
		return false
	case opRepeat:
		return n.min == 0 || nullable(n.subs[0])
	case opGroup, opAtomic:
		return nullable(n.subs[0])
	}
	return true // places, and what a group may have matched
}

// ambiguous reports whether the groups in n depend on which way a match of
// given ends is made, beyond "the earlier repetition takes more".
func ambiguous(n *node, repeated bool) bool {
	switch n.op {
	case opAlt:
		return true
	case opRepeat:
		if repeated || nullable(n.subs[0]) {
			return true
		}
		repeated = true
	}
	for _, s := range n.subs {
		if ambiguous(s, repeated) {
			return true
		}
	}
	return false
}

// tooBig is the largest program in instructions; what is larger is "too big".
const tooBig = 1 << 18

// size estimates the instructions of n, up to tooBig.
func size(n *node) int {
	total := 2
	for _, s := range n.subs {
		total = min(total+size(s), tooBig)
	}
	if n.op == opRepeat {
		total = min(total*max(n.min, n.max, 1), tooBig)
	}
	return total
}
