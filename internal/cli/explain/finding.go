package explain

import (
	"fmt"
	"strings"

	"egressd/internal/run/kernel"
)

// Finding spells one finding of launch doctor.
func Finding(f kernel.Finding) string {
	word := "ok"
	switch {
	case !f.OK && f.Needed:
		word = "FAIL"
	case !f.OK:
		word = "note"
	}
	text := fmt.Sprintf("%-5s %s: %s\n", word, f.Name, f.Detail)
	if f.Fix != "" && !f.OK {
		text += "      fix:\n        " + strings.ReplaceAll(strings.TrimSpace(f.Fix), "\n", "\n        ") + "\n"
	}
	return text
}
