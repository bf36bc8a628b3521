package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// tracePrefix is PS4, expanded.
func (sh *shell) tracePrefix() string {
	ps4 := sh.get("PS4")
	if ps4 == "" {
		return ""
	}
	if strings.ContainsAny(ps4, "$`\\") {
		opts := sh.opts
		sh.opts &^= optXTrace
		status := sh.status
		ps4 = sh.prompt(sh.expandQuoted(ps4))
		sh.opts, sh.status = opts, status
	}
	return ps4
}

func (sh *shell) traceText(text string) {
	n := 2
	if v := sh.lookup("BASH_XTRACEFD"); v != nil && v.isSet {
		if fd := int(decimal(v.str)); sh.fds[fd] != nil {
			n = fd
		}
	}
	sh.bound(n).Write([]byte(sh.tracePrefix() + text + "\n")) //nolint:errcheck // a trace
}

func (sh *shell) traceArgs(_ *syntax.CallExpr, args []string) {
	if !sh.on(optXTrace) {
		return
	}
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = quoteIfNeeded(a)
	}
	sh.traceText(strings.Join(out, " "))
}

// expandQuoted expands a text as if in double quotes.
func (sh *shell) expandQuoted(text string) string {
	w := sh.parseWord(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if w == nil {
		return text
	}
	return sh.str(w)
}

// prompt reads the escapes of prompts.
func (sh *shell) prompt(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		b.WriteString(sh.promptEscape(s[i]))
	}
	return b.String()
}

func (sh *shell) promptEscape(c byte) string {
	now := sh.ses.Now().UTC()
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 'a':
		return "\a"
	case 'e':
		return "\x1b"
	case '\\':
		return `\`
	case '[', ']':
		return ""
	case 'u':
		return "user"
	case 'h', 'H':
		return sh.get("HOSTNAME")
	case 's':
		return "bash"
	case 'v':
		return "5.2"
	case 'V':
		return "5.2.15"
	case 'w':
		return sh.tildeDir(sh.dir)
	case 'W':
		if sh.dir == "/" || sh.dir == sh.get("HOME") {
			return sh.tildeDir(sh.dir)
		}
		return sh.dir[strings.LastIndexByte(sh.dir, '/')+1:]
	case '$':
		return "$"
	case 't':
		return now.Format("15:04:05")
	case 'd':
		return now.Format("Mon Jan 02")
	case 'j':
		return itoa(int64(len(sh.liveJobs())))
	}
	return `\` + string(c)
}

// tildeDir is a directory with the home shortened.
func (sh *shell) tildeDir(dir string) string {
	home := sh.get("HOME")
	if home == "" || home == "/" {
		return dir
	}
	if dir == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(dir, home+"/"); ok {
		return "~/" + rest
	}
	return dir
}

// commandText is $BASH_COMMAND.
func (sh *shell) commandText() string {
	if sh.trapped != "" {
		return sh.trapped
	}
	if sh.current == nil {
		return ""
	}
	return sh.jobText(sh.current)
}

// jobText is a command as jobs shows it.
func (sh *shell) jobText(st *syntax.Stmt) string {
	text := sh.source(st)
	text = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), ";"))
	if st.Background {
		text = strings.TrimSpace(strings.TrimSuffix(text, "&"))
	}
	return text
}
