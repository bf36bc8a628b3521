package expand

import (
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/state"
)

// Prompt decodes the escapes of $PS1 and the other prompts.
func Prompt(sh *state.Shell, s string) string {
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
		b.WriteString(promptEscape(sh, s[i]))
	}
	return b.String()
}

// promptEscape is the meaning of one escape.
func promptEscape(sh *state.Shell, c byte) string {
	now := sh.Session.Now().UTC()
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
		return sh.Vars.Get("HOSTNAME")
	case 's':
		return "bash"
	case 'v':
		return "5.2"
	case 'V':
		return "5.2.15"
	case 'w':
		return sh.TildeDir(sh.Dir.Path)
	case 'W':
		if sh.Dir.Path == "/" || sh.Dir.Path == sh.Vars.Get("HOME") {
			return sh.TildeDir(sh.Dir.Path)
		}
		return sh.Dir.Path[strings.LastIndexByte(sh.Dir.Path, '/')+1:]
	case '$':
		return "$"
	case 't':
		return now.Format("15:04:05")
	case 'd':
		return now.Format("Mon Jan 02")
	case 'j':
		return strconv.FormatInt(int64(len(sh.Jobs.Live())), 10)
	}
	return `\` + string(c)
}
