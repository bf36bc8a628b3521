package regex

// iop is what an instruction does.
type iop uint8

const (
	iRune iop = iota
	iSet
	iJump
	iSplit // x first, then y
	iSave
	iAssert
	iBack
	iLook
	iAtomic
	iMark  // remember the position in a slot
	iCheck // fail when nothing was taken since the mark
	iKeep
	iMatch
	iFail
)

type inst struct {
	op      iop
	negated bool
	behind  bool
	fold    bool
	x, y    int32
	n       int32 // slot, group or assertion; of iSplit, its number
	r       rune
	set     *set
	sub     *prog
}

// prog is a compiled expression: what the backtracking engine runs.
type prog struct {
	code   []inst
	splits int
	slots  int
	first  *[256]bool // bytes that a match begins with; nil: any, or none at all
	plain  bool       // a place can be given up for good once it has failed
	perl   bool
	min    int // for look-behind: the characters it takes, at least
	max    int // ... and at most; -1: any
}

type compiler struct {
	*prog
	err error
}

func compile(root *node, o Options, groups int) (*prog, error) {
	c := compiler{prog: &prog{slots: 2 * (groups + 1), plain: true, perl: o.Syntax == Perl}}
	if size(root) >= tooBig {
		return nil, errTooBig
	}
	c.emit(inst{op: iSave, n: 0})
	c.node(root)
	c.emit(inst{op: iSave, n: 1})
	c.emit(inst{op: iMatch})
	if c.err != nil {
		return nil, c.err
	}
	var first [256]bool
	if !firstBytes(root, &first, o.Bytes) {
		c.first = &first
	}
	return c.prog, nil
}

func (c *compiler) emit(i inst) int32 {
	if len(c.code) >= 4*tooBig {
		c.err = errTooBig
		return 0
	}
	if i.op == iSplit {
		i.n = int32(c.splits)
		c.splits++
	}
	c.code = append(c.code, i)
	return int32(len(c.code) - 1)
}

func (c *compiler) here() int32 { return int32(len(c.code)) }

func (c *compiler) node(n *node) {
	if c.err != nil {
		return
	}
	switch n.op {
	case opNever:
		c.emit(inst{op: iFail})
	case opRune:
		c.emit(inst{op: iRune, r: n.r})
	case opSet:
		c.emit(inst{op: iSet, set: n.set})
	case opCat:
		for _, s := range n.subs {
			c.node(s)
		}
	case opAlt:
		c.alt(n.subs)
	case opRepeat:
		c.repeat(n)
	case opGroup:
		c.emit(inst{op: iSave, n: int32(2 * n.n)})
		c.node(n.subs[0])
		c.emit(inst{op: iSave, n: int32(2*n.n + 1)})
	case opBack:
		c.plain = false
		c.emit(inst{op: iBack, n: int32(n.n), fold: n.fold})
	case opAssert:
		c.emit(inst{op: iAssert, n: int32(n.n)})
	case opLook, opAtomic:
		c.sub(n)
	case opKeep:
		c.emit(inst{op: iSave, n: 0})
	}
}

func (c *compiler) alt(subs []*node) {
	var ends []int32
	for i, s := range subs {
		if i == len(subs)-1 {
			c.node(s)
			break
		}
		split := c.emit(inst{op: iSplit})
		c.code[split].x = c.here()
		c.node(s)
		ends = append(ends, c.emit(inst{op: iJump}))
		c.code[split].y = c.here()
	}
	for _, e := range ends {
		c.code[e].x = c.here()
	}
}

// sub compiles what is matched apart: look-around and atomic groups. They
// share the slots of the whole.
func (c *compiler) sub(n *node) {
	s := compiler{prog: &prog{slots: c.slots, plain: false, perl: c.perl}}
	s.node(n.subs[0])
	s.emit(inst{op: iMatch})
	if s.err != nil {
		c.err = s.err
		return
	}
	c.slots = s.slots
	s.min, s.max = width(n.subs[0])
	op := iAtomic
	if n.op == opLook {
		op = iLook
	}
	c.emit(inst{op: op, sub: s.prog, negated: n.negated, behind: n.behind})
}

func (c *compiler) repeat(n *node) {
	body := n.subs[0]
	for range n.min {
		if c.node(body); c.err != nil {
			return
		}
	}
	if n.max < 0 {
		c.loop(body, n.lazy, n.min == 0 && !c.perl && nullable(body))
		return
	}
	var exits []int32
	for range n.max - n.min {
		exits = append(exits, c.split(n.lazy))
		if c.node(body); c.err != nil {
			return
		}
	}
	for _, e := range exits {
		c.exit(e, n.lazy)
	}
}

// split begins something optional; exit says where its end is.
func (c *compiler) split(lazy bool) int32 {
	at := c.emit(inst{op: iSplit})
	if lazy {
		c.code[at].y = c.here()
	} else {
		c.code[at].x = c.here()
	}
	return at
}

func (c *compiler) exit(split int32, lazy bool) {
	if lazy {
		c.code[split].x = c.here()
	} else {
		c.code[split].y = c.here()
	}
}

// loop is body, any number of times. With once the first turn may be empty: a
// group in it has then matched the empty text.
func (c *compiler) loop(body *node, lazy, once bool) {
	if once {
		outer := c.split(lazy)
		c.node(body)
		c.loop(body, lazy, false)
		c.exit(outer, lazy)
		return
	}
	at := c.split(lazy)
	slot := int32(-1)
	if nullable(body) {
		slot = int32(c.slots)
		c.slots++
		c.emit(inst{op: iMark, n: slot})
	}
	c.node(body)
	if slot >= 0 {
		c.emit(inst{op: iCheck, n: slot})
	}
	c.emit(inst{op: iJump, x: at})
	c.exit(at, lazy)
}

// width is how many characters n takes: at least and at most; -1: any.
func width(n *node) (lo, hi int) {
	switch n.op {
	case opRune, opSet:
		return 1, 1
	case opBack:
		return 0, -1
	case opGroup, opAtomic:
		return width(n.subs[0])
	case opRepeat:
		lo, hi = width(n.subs[0])
		if n.max < 0 || hi < 0 {
			return lo * n.min, -1
		}
		return lo * n.min, hi * n.max
	case opCat:
		for _, s := range n.subs {
			a, b := width(s)
			lo += a
			if hi >= 0 {
				hi += b
			}
			if b < 0 {
				hi = -1
			}
		}
	case opAlt:
		for i, s := range n.subs {
			a, b := width(s)
			if i == 0 {
				lo, hi = a, b
				continue
			}
			lo = min(lo, a)
			if hi >= 0 {
				hi = max(hi, b)
			}
			if b < 0 {
				hi = -1
			}
		}
	}
	return lo, hi
}

// firstBytes adds the bytes that a match of n begins with, and reports whether
// n may match the empty text, so that what follows counts, too.
func firstBytes(n *node, set *[256]bool, single bool) (empty bool) {
	switch n.op {
	case opNever:
		return false
	case opRune:
		addFirst(set, n.r, n.r, single)
		return false
	case opSet:
		for i := 0; i < len(n.set.ranges); i += 2 {
			addFirst(set, n.set.ranges[i], n.set.ranges[i+1], single)
		}
		return false
	case opCat:
		for _, s := range n.subs {
			if !firstBytes(s, set, single) {
				return false
			}
		}
		return true
	case opAlt:
		for _, s := range n.subs {
			empty = firstBytes(s, set, single) || empty
		}
		return empty
	case opGroup, opAtomic:
		return firstBytes(n.subs[0], set, single)
	case opRepeat:
		if n.max == 0 {
			return true
		}
		return firstBytes(n.subs[0], set, single) || n.min == 0
	case opBack:
		for i := range set {
			set[i] = true
		}
	}
	return true
}

func addFirst(set *[256]bool, lo, hi rune, single bool) {
	if single {
		for r := lo; r <= min(hi, 255); r++ {
			set[r] = true
		}
		return
	}
	for r := lo; r <= min(hi, 127); r++ {
		set[r] = true
	}
	if hi >= 128 {
		for b := 128; b < 256; b++ {
			set[b] = true
		}
	}
}
