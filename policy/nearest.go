package policy

import (
	"strings"

	"egressd/internal/nearest"
)

// suggestWord proposes the known word nearest to a mistyped one.
func suggestWord(word string, known []string) string {
	if best := nearest.Word(strings.ToLower(word), known, 2); best != "" {
		return "did you mean " + best + "?"
	}
	return "known are " + strings.Join(known, ", ")
}
