package gnu

import (
	"strings"

	"egressd/hermetic/internal/shell/pattern"
)

// Fnmatch is fnmatch(3); period says that only a period matches one at the
// beginning.
func Fnmatch(p, name string, period bool) bool {
	if period && strings.HasPrefix(name, ".") && !strings.HasPrefix(p, ".") && !strings.HasPrefix(p, `\.`) {
		return false
	}
	return pattern.Compile(p, pattern.Options{}).Match(name)
}
