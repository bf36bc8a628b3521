package format

import (
	"fmt"
	"strings"
)

// Validate refuses a manifest of another version, or with names of objects that are none.
func (m Manifest) Validate() error {
	switch {
	case m.Version != VersionManifest:
		return fmt.Errorf("version is %q, not %q", m.Version, VersionManifest)
	case !hexOf(m.BaseRef, 40) && !hexOf(m.BaseRef, 64):
		return fmt.Errorf("baseRef %q is no commit", m.BaseRef)
	case !hexOf(m.BundleHash, 64):
		return fmt.Errorf("bundleHash %q is no hash", m.BundleHash)
	case m.DirtyDiffHash != "" && !hexOf(m.DirtyDiffHash, 64):
		return fmt.Errorf("dirtyDiffHash %q is no hash", m.DirtyDiffHash)
	}
	for _, f := range m.UntrackedFiles {
		if !hexOf(f.Hash, 64) {
			return fmt.Errorf("untrackedFiles: hash %q of %q is no hash", f.Hash, f.Path)
		}
	}
	return nil
}

func hexOf(s string, length int) bool {
	return len(s) == length && strings.Trim(s, "0123456789abcdef") == ""
}
