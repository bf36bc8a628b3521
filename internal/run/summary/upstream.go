package summary

import (
	"slices"

	"egressd/policy"
)

// adviseUpstream says what to type where the upstream proxy stood in the way.
func adviseUpstream(b *page, failed []*total) {
	for _, a := range []struct {
		reason policy.Reason
		text   string
	}{
		{policy.ReasonProxyRefused, "The upstream proxy refused: ask who runs it. If it wants names and not addresses, add: --upstream-resolve proxy"},
		{policy.ReasonProxyLogin, "The upstream proxy wants a login: put USER:PASSWORD into a file, and add: --upstream-credentials FILE"},
		{policy.ReasonProxyFailed, "The upstream proxy does not work: name another one with --upstream-proxy URL, or none; --events FILE says more."},
	} {
		if slices.ContainsFunc(failed, func(t *total) bool { return t.reason == a.reason }) {
			b.WriteString(a.text + "\n")
		}
	}
	if slices.ContainsFunc(failed, func(t *total) bool {
		return t.via && (t.reason == policy.ReasonDNSError || t.reason == policy.ReasonDNSTimeout || t.reason == policy.ReasonNotFound)
	}) {
		b.WriteString("Names are looked up on this machine. Where only the upstream proxy knows them, add: --upstream-resolve proxy\n")
	}
}
