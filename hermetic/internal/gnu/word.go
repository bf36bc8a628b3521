package gnu

import "strings"

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
