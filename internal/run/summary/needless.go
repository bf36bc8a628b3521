package summary

import (
	_ "embed"
	"strings"
)

//go:embed needless.txt
var needlessText string

// needless says what a host is for if programs work as well without it: telemetry,
// error reports, update checks. "": it is not known to be one. Nothing is decided by
// it, and no rule is suggested for such a host.
func needless(host string) string {
	if host == "" {
		return ""
	}
	for line := range strings.Lines(needlessText) {
		name, what, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		if zone, below := strings.CutPrefix(name, "."); name == host || below && (host == zone || strings.HasSuffix(host, name)) {
			return strings.TrimSpace(what)
		}
	}
	return ""
}
