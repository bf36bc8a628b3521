package scan

import (
	"fmt"
	"strings"
)

// Mistake is a syntax error.
type Mistake struct {
	Line int
	Text string // the message of bash
	Show string // the line that bash shows; "" if none
}

// Say is the lines that bash prints. name is that of the shell or the script;
// base is the number of lines before the text.
func (m *Mistake) Say(name string, base int) []string {
	head := fmt.Sprintf("%s: line %d: ", name, m.Line+base)
	out := []string{head + m.Text}
	if m.Show != "" {
		out = append(out, head+"`"+m.Show+"'")
	}
	return out
}

func mistake(text string, err error) *Mistake {
	at, line := where(err)
	msg := err.Error()
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if _, quote, ok := strings.Cut(msg, "without closing quote `"); ok {
		return &Mistake{Line: int(line), Text: "unexpected EOF while looking for matching `" + strings.TrimSuffix(quote, "`") + "'"}
	}
	if (strings.Contains(msg, "reached `EOF`") || strings.Contains(msg, "reached EOF")) || strings.Contains(msg, "statement must end with") && strings.TrimSpace(text[min(int(at), len(text)):]) == "" {
		for open, end := range map[string]string{"`${`": "}", "`$(`": ")", "`$((`": ")", "`((`": ")"} {
			if strings.Contains(msg, "matching "+open) {
				return &Mistake{Line: int(line), Text: "unexpected EOF while looking for matching `" + end + "'"}
			}
		}
		return &Mistake{Line: lines + 1, Text: "syntax error: unexpected end of file"}
	}
	token := tokenAt(text, int(at), msg)
	if token == "" {
		return &Mistake{Line: lines + 1, Text: "syntax error: unexpected end of file"}
	}
	return &Mistake{Line: int(line), Text: "syntax error near unexpected token `" + token + "'", Show: lineAt(text, int(at))}
}

// tokenAt guesses the token that bash would complain about: the one that the
// parser names, or the one where it stopped.
func tokenAt(text string, at int, msg string) string {
	if at >= len(text) {
		at = len(text)
	}
	rest := text[at:]
	if strings.Contains(msg, "must be followed by") || strings.Contains(msg, "statement must end with") {
		skip := firstToken(rest)
		rest = strings.TrimLeft(rest[len(skip):], " \t")
		if strings.Contains(msg, "must end with") || rest == "" {
			if rest == "" || strings.TrimSpace(rest) == "" {
				if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "\n") || skip == "for" || strings.HasPrefix(skip, ">") || strings.HasPrefix(skip, "<") {
					return "newline"
				}
				return ""
			}
		}
	}
	rest = strings.TrimLeft(rest, " \t")
	if strings.HasPrefix(rest, "\n") {
		return "newline"
	}
	return firstToken(rest)
}

func firstToken(s string) string {
	if s == "" {
		return ""
	}
	for _, op := range []string{"<<<", "<<-", "&>>", ";;&", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "((", "(", ")", ";", "&", "|", "<", ">"} {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	if i := strings.IndexAny(s, " \t\n;&|<>()"); i >= 0 {
		return s[:i]
	}
	return s
}

func lineAt(text string, at int) string {
	at = min(at, len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
		return text[start : at+end]
	}
	return text[start:]
}
