package cli

import "runtime/debug"

// version is set by the linker (-X egressd/internal/cli.version=v1.2.3) if the
// build has no version control to read it from: in the image's build.
var version string

// Version reports the version that was built, and its commit if that is known.
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
