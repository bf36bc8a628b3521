package expand

import (
	"strings"
)

// tilde expands the prefix of s, which begins with ~, and returns what is left
// of s. There are no users: ~name stays as it is.
func (e *expansion) tilde(s string, last bool) string {
	end := strings.IndexAny(s, "/:")
	if end < 0 {
		if !last {
			return s
		}
		end = len(s)
	}
	var to string
	switch s[:end] {
	case "~":
		v := e.sh.Vars.Lookup("HOME")
		if to = "/"; v != nil && v.IsSet {
			to = v.Str
		}
	case "~+":
		to = e.sh.Vars.Get("PWD")
	case "~-":
		if to = e.sh.Vars.Get("OLDPWD"); to == "" {
			return s
		}
	default:
		return s
	}
	e.add(to, true)
	return s[end:]
}
