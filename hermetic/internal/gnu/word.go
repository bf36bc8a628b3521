package gnu

import (
	"strings"

	"egressd/hermetic/internal/shell/pattern"
)

// Word completes value to the one of words that it begins, or is; false: there is
// none, or more than one.
func Word(value string, words ...string) (string, bool) {
	found := ""
	for _, word := range words {
		if word == value {
			return word, true
		}
		if strings.HasPrefix(word, value) {
			if found != "" {
				return "", false
			}
			found = word
		}
	}
	return found, found != ""
}

// Fnmatch is fnmatch(3); period says that only a period matches one at the
// beginning.
func Fnmatch(p, name string, period bool) bool {
	if period && strings.HasPrefix(name, ".") && !strings.HasPrefix(p, ".") && !strings.HasPrefix(p, `\.`) {
		return false
	}
	return pattern.Compile(p, pattern.Options{}).Match(name)
}
