package scan

import (
	"fmt"
	"strings"
)

// rewrite changes text so that the parser can read the place of err; ok is
// false if no change is known to help.
func rewrite(text string, err error) (next string, w *Warning, ok bool) {
	at, line := where(err)
	msg := err.Error()
	switch {
	case strings.Contains(msg, "unclosed here-document"):
		return closeHereDoc(text, msg, int(line))
	case strings.Contains(msg, "expansions not allowed in heredoc words"):
		next, ok = plainDelimiter(text, int(at))
		return next, nil, ok
	case strings.Contains(msg, "cannot negate a command multiple times"):
		next, ok = doubleNegation(text, int(at))
		return next, nil, ok
	}
	if strings.Contains(msg, "not a valid parameter expansion operator: `~`") {
		next, ok = toggledCase(text, int(at))
		return next, nil, ok
	}
	if strings.Contains(msg, "invalid var name") {
		next, ok = quoteWord(text, int(at))
		return next, nil, ok
	}
	if next, ok = appendedKey(text, int(at)); ok {
		return next, nil, true
	}
	if strings.Contains(msg, "cannot form a statement alone") {
		if i := strings.IndexByte(text[min(int(at), len(text)):], '!'); i >= 0 {
			i += int(at) + 1
			return text[:i] + " true" + text[i:], nil, true
		}
	}
	if next, ok = spacedKey(text, int(at)); ok {
		return next, nil, true
	}
	next, ok = arithmetic(text, int(at))
	return next, nil, ok
}

// Toggled marks the pattern of ${x~} and ${x~~}, which the parser reads as
// ${x^} and ${x^^}.
const Toggled = "\x02"

// toggledCase replaces the operator before at by one that the parser knows.
func toggledCase(text string, at int) (string, bool) {
	at = min(at, len(text))
	i := strings.IndexByte(text[at:min(at+2, len(text))], '~')
	if i < 0 {
		return "", false
	}
	op := "^"
	if i += at; strings.HasPrefix(text[i:], "~~") {
		op = "^^"
	}
	return text[:i] + op + Toggled + text[i+len(op):], true
}

// quoteWord quotes a word: export accepts any, and checks it when it runs.
func quoteWord(text string, at int) (string, bool) {
	end := at
	for end < len(text) && strings.IndexByte(" \t\n;&|()<>\"'$`", text[end]) < 0 {
		end++
	}
	if end == at {
		return "", false
	}
	return text[:at] + "'" + text[at:end] + "'" + text[end:], true
}

// spacedKey quotes a subscript with blanks, the last open one before a mistake:
// a[x y]=1.
func spacedKey(text string, at int) (string, bool) {
	at = min(at+1, len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	open := strings.LastIndexByte(text[start:at], '[')
	for open > 0 {
		i := start + open
		end := strings.IndexAny(text[i:], "]\n")
		if end < 0 || text[i+end] != ']' {
			return "", false
		}
		inside := text[i+1 : i+end]
		if isLetter(text[i-1]) && strings.ContainsAny(inside, " \t") && !strings.ContainsAny(inside, "\"'") {
			return text[:i+1] + `"` + inside + `"` + text[i+end:], true
		}
		open = strings.LastIndexByte(text[start:i], '[')
	}
	return "", false
}

// Appended marks an element "[key]+=value" of an array, which the parser reads
// as an ordinary word.
const Appended = "\x01"

// appendedKey marks the last "[key]+=" before a mistake, on its line.
func appendedKey(text string, at int) (string, bool) {
	at = min(at, len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	end := at
	for end < len(text) && end < at+64 && text[end] != '\n' {
		end++
	}
	for end > start {
		i := strings.LastIndex(text[start:end], "]+=")
		if i < 0 {
			return "", false
		}
		end = start + i
		open := strings.LastIndexByte(text[start:end], '[')
		if open > 0 && strings.IndexByte(" \t(", text[start+open-1]) >= 0 {
			return text[:start+open] + Appended + text[start+open:], true
		}
	}
	return "", false
}

// closeHereDoc ends a here-document that the text does not end. Bash only
// warns.
func closeHereDoc(text, msg string, line int) (string, *Warning, bool) {
	i := strings.Index(msg, "unclosed here-document `")
	if i < 0 {
		return "", nil, false
	}
	delim := strings.TrimSuffix(msg[i+len("unclosed here-document `"):], "`")
	if delim == "" {
		delim = "\n"
	}
	sep := "\n"
	if strings.HasSuffix(text, "\n") {
		sep = ""
	}
	w := &Warning{Line: line, Text: fmt.Sprintf("here-document at line %d delimited by end-of-file (wanted `%s')", line, delim)}
	return text + sep + delim + "\n", w, true
}

// plainDelimiter replaces a delimiter of a here-document that contains an
// expansion. Bash takes its text as it is.
func plainDelimiter(text string, at int) (string, bool) {
	start := strings.LastIndex(text[:min(at+2, len(text))], "<<")
	if start < 0 {
		return "", false
	}
	start += 2
	if start < len(text) && text[start] == '-' {
		start++
	}
	for start < len(text) && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	end := start
	for end < len(text) && strings.IndexByte(" \t\n;&|", text[end]) < 0 {
		switch text[end] {
		case '(':
			end = closing(text, end)
		case '{':
			if end > start && text[end-1] == '$' {
				for end < len(text) && text[end] != '}' {
					end++
				}
			}
		}
		end++
	}
	if end > len(text) {
		return "", false
	}
	delim := text[start:end]
	fresh := fmt.Sprintf("EGRESSD_%d", start)
	head := text[:start] + fresh
	lines := strings.SplitAfter(text[end:], "\n")
	for i, l := range lines[1:] {
		if strings.TrimLeft(strings.TrimSuffix(l, "\n"), "\t") == delim {
			nl := l[len(strings.TrimSuffix(l, "\n")):]
			lines[i+1] = fresh + nl
			return head + strings.Join(lines, ""), true
		}
	}
	body := head + strings.Join(lines, "")
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return body + fresh + "\n", true
}

func doubleNegation(text string, at int) (string, bool) {
	i := at
	for i < len(text) && (text[i] == '!' || text[i] == ' ') {
		j := i + 1
		for j < len(text) && text[j] == ' ' {
			j++
		}
		if text[i] == '!' && j < len(text) && text[j] == '!' {
			return text[:i] + " " + text[i+1:j] + " " + text[j+1:], true
		}
		i++
	}
	return "", false
}

// arithmetic rewrites the last "((" before a mistake. If it ends in "))" it is
// an expression, which is checked when it runs: it is quoted. Otherwise it is a
// subshell in a subshell: a blank is put between the parentheses.
func arithmetic(text string, at int) (string, bool) {
	for from := min(at+3, len(text)); from > 0; {
		i := strings.LastIndex(text[:from], "((")
		if i < 0 {
			return "", false
		}
		from = i + 1
		end := closing(text, i+1)
		if end+1 < len(text) && end < at-1 && at > 0 && text[end] == ')' && end+1 < at {
			continue
		}
		if end >= len(text) {
			continue
		}
		if end+1 < len(text) && text[end+1] == ')' {
			inside := text[i+2 : end]
			if strings.HasPrefix(inside, `"`) && strings.HasSuffix(inside, `"`) {
				continue
			}
			quoted := strings.ReplaceAll(inside, `"`, ``)
			return text[:i+2] + `"` + quoted + `"` + text[end:], true
		}
		return text[:i+1] + " " + text[i+1:], true
	}
	return "", false
}

// closing is the index of the parenthesis that closes the one at text[at],
// outside quotes; len(text) if there is none.
func closing(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\'':
			j := strings.IndexByte(text[i+1:], '\'')
			if j < 0 {
				return len(text)
			}
			i += j + 1
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
