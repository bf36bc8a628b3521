package docs

import (
	"regexp"
	"strings"
)

const anything = "..."

// mismatch compares what a page says that commands print with what they
// printed, and reports the first line that nothing answers to, or "". Blanks
// count as one, "..." stands for anything within a line, a line of its own for
// any number of lines; everything else is literal.
func mismatch(want, got string) string {
	w, g := tidy(want), tidy(got)
	if len(w) == 0 {
		return "an empty block says nothing"
	}
	if worst := matchLines(w, g); worst >= 0 {
		if worst == len(w) {
			return "there are more lines than the page says"
		}
		return "no line for: " + w[worst]
	}
	return ""
}

// matchLines reports -1 for a match, else how many lines of want matched in the
// best attempt.
func matchLines(want, got []string) int {
	if len(want) == 0 {
		if len(got) == 0 {
			return -1
		}
		return 0
	}
	if want[0] == anything {
		best := 0
		for skip := 0; skip <= len(got); skip++ {
			n := matchLines(want[1:], got[skip:])
			if n < 0 {
				return -1
			}
			best = max(best, n+1)
		}
		return best
	}
	if len(got) == 0 || !linePattern(want[0]).MatchString(got[0]) {
		return 0
	}
	n := matchLines(want[1:], got[1:])
	if n < 0 {
		return -1
	}
	return n + 1
}

func linePattern(line string) *regexp.Regexp {
	var out strings.Builder
	for i, part := range strings.Split(line, anything) {
		if i > 0 {
			out.WriteString(".*")
		}
		out.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile("^" + out.String() + "$")
}

// tidy splits text into lines without empty ones, blanks run together.
func tidy(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	return out
}
