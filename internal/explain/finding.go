package explain

import (
	"fmt"
	"runtime/debug"
	"strings"

	"egressd/internal/kernel"
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

// Version reports what was built, and from which commit where that is known.
func Version() string {
	version, commit := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" {
			version = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value
			}
		}
	}
	return version + commit
}
