package test

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/regex"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// regex is =~: a POSIX extended regular expression, in which quoted characters
// stand for themselves. One that is not valid makes the status 2.
func (t *expression) regex(left string, w *syntax.Word) bool {
	sh := t.sh
	text := regexText(expand.WithQuotes(sh, w))
	t.note(quote.IfNeeded(left) + " =~ " + text)
	re, err := regexOf(sh, text)
	if err != nil {
		t.failed = true
		return false
	}
	at, err := re.Find([]byte(left), 0, 0)
	sh.CheckLimit()
	if err != nil {
		sh.Errorf("%v", err)
		t.failed = true
		return false
	}
	if at == nil {
		sh.Vars.SetList("BASH_REMATCH", nil)
		return false
	}
	groups := make([]string, len(at)/2)
	for i := range groups {
		if at[2*i] >= 0 {
			groups[i] = left[at[2*i]:at[2*i+1]]
		}
	}
	sh.Vars.SetList("BASH_REMATCH", groups)
	return true
}

// regexOf compiles an expression, or uses the last one again.
func regexOf(sh *state.Shell, text string) (*regex.Regexp, error) {
	fold := sh.Options.Shopt["nocasematch"]
	if last := sh.Work.Regex; last != nil && last.Text == text && last.Fold == fold {
		return last.Re, nil
	}
	re, err := regex.Compile(text, regex.Options{Syntax: regex.Extended, Fold: fold, Steps: sh.Session.Budget.Steps})
	if err != nil {
		return nil, err
	}
	sh.Work.Regex = &state.Regex{Text: text, Fold: fold, Re: re}
	return re, nil
}

// regexText is s with a backslash before each quoted character that would
// otherwise be an operator. Between brackets there are no operators and no
// escapes.
func regexText(s string, quoted []bool) string {
	isQuoted := func(i int) bool { return quoted != nil && quoted[i] }
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '[' && !isQuoted(i) {
			if end := bracketEnd(s, i, isQuoted); end > 0 {
				b.WriteString(s[i:end])
				i = end
				continue
			}
		}
		if isQuoted(i) && strings.IndexByte(`\.+*?()|[]{}^$`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// bracketEnd is the index after the bracket expression at s[at]; -1 if it does
// not end.
func bracketEnd(s string, at int, quoted func(int) bool) int {
	i := at + 1
	if i < len(s) && s[i] == '^' && !quoted(i) {
		i++
	}
	if i < len(s) && s[i] == ']' && !quoted(i) {
		i++
	}
	for i < len(s) {
		switch {
		case quoted(i):
		case s[i] == ']':
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			if k := strings.Index(s[i+2:], s[i+1:i+2]+"]"); k >= 0 {
				i += k + 3
			}
		}
		i++
	}
	return -1
}
