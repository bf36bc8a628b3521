// Package nearest finds the known word that a mistyped word was meant to be.
//
//	nearest.Word("alow", []string{"allow", "deny"}, 2) // "allow"
package nearest

// maxWord bounds the work: a longer word is nobody's slip.
const maxWord = 64

// Word reports the first of the known words that is nearest to word, and at most
// that many letters away from it. It reports "" if none is. Letters are bytes.
func Word(word string, known []string, most int) string {
	best := ""
	if len(word) > maxWord {
		return best
	}
	for _, k := range known {
		if d := distance(word, k); d <= most {
			best, most = k, d-1
		}
	}
	return best
}

// distance counts the letters to change, add or drop between a and b: the
// Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
