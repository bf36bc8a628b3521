package cli

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Set by the linker (-X egressd/internal/cli.version=v1.2.3, and so on) if the build has
// no version control to read them from: in the image's build, in that of a release.
var (
	version string
	commit  string
	date    string // RFC 3339, of the commit
)

// Version reports the version that was built, and its commit and the commit's date if
// they are known.
func Version() string {
	number, built := "(devel)", [2]string{commit, date}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" {
			number = v
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				built[0] = cmp.Or(commit, s.Value)
			case "vcs.time":
				built[1] = cmp.Or(date, s.Value)
			}
		}
	}
	return strings.TrimRight(strings.Join([]string{cmp.Or(version, number), built[0], built[1]}, " "), " ")
}
