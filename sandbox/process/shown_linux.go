package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"egressd/internal/linux/mountinfo"
	"egressd/sandbox/process/control"
)

// maxShown bounds Backend.Binds.
const maxShown = 64

// planShown checks what the caller shows at other paths, and sorts each before
// what lies in it.
//
// Threat: a caller shows something in place of the directories that the sandbox
// is made of -> nothing can be shown at /, or in /proc, /sys and /dev. Left over:
// the caller answers for what it shows, including sockets that are bound there
// later.
func planShown(binds []Bind) ([]control.Bind, error) {
	if len(binds) > maxShown {
		return nil, fmt.Errorf("binds: %d, of at most %d", len(binds), maxShown)
	}
	var out []control.Bind
	for _, b := range binds {
		if !filepath.IsAbs(b.Target) || filepath.Clean(b.Target) != b.Target || b.Target == "/" {
			return nil, fmt.Errorf("bind target %q: must be an absolute path without detours, and not /", b.Target)
		}
		for _, reserved := range []string{"/proc", "/sys", "/dev"} {
			if mountinfo.Within(b.Target, reserved) {
				return nil, fmt.Errorf("bind target %s: nothing can be shown in %s", b.Target, reserved)
			}
		}
		source, err := filepath.EvalSymlinks(b.Source)
		if err != nil {
			return nil, fmt.Errorf("bind: %w", err)
		}
		if source, err = filepath.Abs(source); err != nil {
			return nil, fmt.Errorf("bind: %w", err)
		}
		fi, err := os.Lstat(source)
		if err != nil {
			return nil, fmt.Errorf("bind: %w", err)
		}
		if !fi.IsDir() && !fi.Mode().IsRegular() {
			return nil, fmt.Errorf("bind %s: neither a directory nor a regular file", b.Source)
		}
		if slices.ContainsFunc(out, func(o control.Bind) bool { return o.Path == b.Target }) {
			return nil, fmt.Errorf("bind target %s: given twice", b.Target)
		}
		out = append(out, control.Bind{Path: b.Target, Source: source, Dir: fi.IsDir(), ReadOnly: b.ReadOnly})
	}
	slices.SortStableFunc(out, func(a, b control.Bind) int {
		return strings.Count(a.Path, "/") - strings.Count(b.Path, "/")
	})
	return out, nil
}

// shownAt reports whether path is, or lies in, what the caller shows.
func shownAt(path string, shown []control.Bind) bool {
	return slices.ContainsFunc(shown, func(b control.Bind) bool { return mountinfo.Within(path, b.Path) })
}
