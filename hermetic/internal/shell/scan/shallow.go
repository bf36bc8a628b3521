package scan

import "strings"

// maxChain bounds how many operators join one list or one expression: in the
// tree they are nested, too. Each costs about a kilobyte of stack.
const maxChain = 15_000

// Shallow reports whether text has no list or expression longer, and no command
// nested deeper, than its tree may be. The parser builds such trees without
// recursion, so its guard does not see them.
//
// Threat: "a && a && ...", 60,000 times -> a walk over the tree uses up the
// stack -> the operators are counted here first, in a loop, with most quoted
// text counted as if it were not quoted -> text whose quotes are misread here;
// the shell bounds its own recursion over lists and expressions, too.
func Shallow(text string, most int) bool {
	d := depths{text: text, most: most}
	for d.at < len(text) {
		if !d.step() {
			return false
		}
	}
	return true
}

// depths is the state of the count.
type depths struct {
	text  string
	most  int
	at    int
	open  []byte // open brackets; 'A' and 'S' stand for those around arithmetic: ${ (( and a[
	arith int    // how many of them are open
	words int    // keywords that begin a command
	chain int
	fresh bool // at the beginning of a line
	after byte // the last character that is not a blank
}

func (d *depths) step() bool {
	c := d.text[d.at]
	switch c {
	case '\\':
		d.at += 2
		d.after = 0
		return true
	case ' ', '\t', '\r':
		d.at++
		return true
	case '\n', ';':
		d.fresh = d.after != '&' && d.after != '|' || c == ';'
		d.at++
		return true
	}
	if d.fresh && c != '&' && c != '|' && d.arith == 0 {
		d.chain = 0
	}
	d.fresh = false
	if c == '#' && d.comment() || c == '\'' && d.quoted() {
		return true
	}
	ok := d.bracket(c) && d.operator(c)
	if isLetter(c) {
		d.word()
	} else {
		d.at++
	}
	d.after = c
	return ok && len(d.open) < 1<<16 && d.words <= d.most*4 && d.chain <= maxChain
}

// comment skips a comment.
func (d *depths) comment() bool {
	if d.at > 0 && strings.IndexByte(" \t\n;", d.text[d.at-1]) < 0 || d.arith > 0 {
		return false
	}
	if j := strings.IndexByte(d.text[d.at:], '\n'); j >= 0 {
		d.at += j
	} else {
		d.at = len(d.text)
	}
	return true
}

// quoted skips single quotes, if nothing in them would matter were they not
// quotes at all.
func (d *depths) quoted() bool {
	j := strings.IndexByte(d.text[d.at+1:], '\'')
	if j < 0 || strings.ContainsAny(d.text[d.at+1:d.at+1+j], "$`({[&|") {
		return false
	}
	d.at += j + 2
	d.after = '\''
	return true
}

func (d *depths) bracket(c byte) bool {
	prev := byte(0)
	if d.at > 0 {
		prev = d.text[d.at-1]
	}
	switch c {
	case '(', '{', '[':
		kind := c
		if c == '(' && prev == '(' || c == '{' && prev == '$' || c == '[' && (prev == '$' || d.isName()) {
			kind = map[byte]byte{'(': 'A', '{': 'P', '[': 'S'}[c]
			d.arith++
		}
		d.open = append(d.open, kind)
	case ')':
		d.close('(', 'A')
	case '}':
		d.close('{', 'P')
	case ']':
		d.close('[', 'S')
	}
	return true
}

// isName reports whether a name ends here: then a bracket begins a subscript.
func (d *depths) isName() bool {
	i := d.at
	for i > 0 && isLetter(d.text[i-1]) {
		i--
	}
	return i < d.at && (d.text[i] < '0' || d.text[i] > '9') && (i == 0 || d.text[i-1] != '\\')
}

// close removes the last bracket of a kind, and those that are open inside it.
func (d *depths) close(a, b byte) {
	for i := len(d.open) - 1; i >= 0; i-- {
		if d.open[i] == a || d.open[i] == b {
			for _, o := range d.open[i:] {
				if o == 'A' || o == 'P' || o == 'S' {
					d.arith--
				}
			}
			d.open = d.open[:i]
			return
		}
	}
}

// operator counts an operator: everywhere those that join commands, in
// arithmetic those that join numbers.
func (d *depths) operator(c byte) bool {
	switch c {
	case '|', '&', '!', '`':
		d.chain++
	case '+', '-', '*', '/', '%', '<', '>', '=', '?', ':', ',', '~', '^':
		if d.arith > 0 {
			d.chain++
		}
	}
	if c == '`' && d.chain > d.most*10 && d.after == '`' {
		return false
	}
	return true
}

// word skips a word, and counts it if it is a keyword that nests.
func (d *depths) word() {
	start := d.at
	for d.at < len(d.text) && isLetter(d.text[d.at]) {
		d.at++
	}
	if d.at-start > 8 {
		return
	}
	switch d.text[start:d.at] {
	case "if", "while", "until", "for", "case", "select", "function", "time", "coproc", "elif", "do":
		d.words++
	case "fi", "done", "esac":
		d.words = max(d.words-2, 0)
	}
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || '0' <= c && c <= '9'
}
