package explain

import "runtime/debug"

// version is told by the linker (-X egressd/internal/cli/explain.version=v1.2.3)
// where no version control can: in the image's build.
var version string

// Version reports what was built, and from which commit where that is known.
func Version() string {
	number, commit := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" {
			number = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value
			}
		}
	}
	if version != "" {
		number = version
	}
	return number + commit
}
