package receipt

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

// verifyStrict checks what a receipt claims beyond the format's own verifier: each
// summary follows from the chain, the times from each other, and the run stayed
// within its contract.
func (b *bundle) verifyStrict(r *reader, wrong func(bool, string)) {
	for _, v := range []struct {
		name, want string
		of         canonical.Object
	}{{"contract", format.VersionContract, b.contract}, {"receipt", format.VersionReceipt, b.receipt}} {
		is := r.text(v.of, "version")
		wrong(is != v.want, fmt.Sprintf("%s.version is %q, not %q", v.name, is, v.want))
	}
	b.strictSummaries(r, wrong)
	b.strictTimes(r, wrong)
	b.strictOrder(r, wrong)

	isolation := func(s string) string {
		if s == "" {
			return "process"
		}
		return s
	}
	ordered, got := isolation(r.optional(b.contract, "isolation")), isolation(r.optional(b.receipt, "runner", "isolation"))
	wrong(ordered != got, fmt.Sprintf("the contract orders isolation %s, and the run had %s", ordered, got))
	b.strictNetwork(r, wrong)
	var may []string
	for _, s := range r.array(b.contract, "secrets") {
		may = append(may, r.text(s, "name")+"\x00"+r.text(s, "scope"))
	}
	for _, e := range b.of(r, "secret.released") {
		name := r.text(e, "event", "name")
		wrong(!slices.Contains(may, name+"\x00"+r.text(e, "event", "scope")), fmt.Sprintf("the secret %q was released, which the contract does not name", name))
	}
	for _, o := range []struct {
		name string
		of   canonical.Object
	}{{"contract", b.contract}, {"receipt", b.receipt}} {
		seen := map[string]bool{}
		for _, s := range r.array(o.of, "signatures") {
			signer := r.text(s, "signer")
			wrong(seen[signer], fmt.Sprintf("the %s is signed more than once on behalf of %s", o.name, signer))
			seen[signer] = true
		}
	}
}

// strictSummaries holds each summary of the receipt against the chain.
func (b *bundle) strictSummaries(r *reader, wrong func(bool, string)) {
	sorted := func(s []string) []string { slices.Sort(s); return s }
	lines := func(name string, members ...string) []string {
		var all []string
		for _, v := range r.array(b.receipt, name) {
			var line []string
			for _, m := range members {
				line = append(line, r.text(v, m))
			}
			all = append(all, strings.Join(line, "\x00"))
		}
		return sorted(all)
	}
	events := func(typ string, members ...string) []string {
		var all []string
		for _, e := range b.of(r, typ) {
			var line []string
			for _, m := range members {
				line = append(line, r.text(e, "event", m))
			}
			all = append(all, strings.Join(line, "\x00"))
		}
		return sorted(all)
	}
	wrong(!slices.Equal(lines("networkAccessed", "host", "decision"), slices.Compact(events("network.connected", "host", "decision"))),
		"networkAccessed does not match network.connected events")
	wrong(!slices.Equal(slices.Compact(lines("modelsUsed", "provider", "model")), slices.Compact(events("model.called", "provider", "model"))),
		"modelsUsed does not match model.called events")
	wrong(!slices.Equal(lines("boundaryDisclosures", "direction", "contentHash", "dataClass"), events("boundary.crossed", "direction", "contentHash", "dataClass")),
		"boundaryDisclosures does not match boundary.crossed events")
	var claimed []string
	for _, v := range r.array(b.receipt, "workspaceOut", "artifactHashes") {
		s, ok := v.(string)
		if !ok {
			r.fail([]string{"workspaceOut", "artifactHashes"}, "an array of strings")
		}
		claimed = append(claimed, s)
	}
	wrong(!slices.Equal(slices.Compact(sorted(claimed)), slices.Compact(sorted(b.artifacts(r, "")))),
		"workspaceOut.artifactHashes does not match artifact.created events")
	wrong(r.text(b.receipt, "workspaceOut", "diffHash") == "" && len(b.artifacts(r, "diff")) > 0,
		"workspaceOut.diffHash is empty, and a diff was created")
}

// strictTimes holds the times against each other.
func (b *bundle) strictTimes(r *reader, wrong func(bool, string)) {
	at := func(what string, v any, names ...string) time.Time {
		s := r.text(v, names...)
		t, err := time.Parse(time.RFC3339Nano, s)
		wrong(err != nil, fmt.Sprintf("%s is no time: %q", what, s))
		return t
	}
	issued, expires := at("contract.issuedAt", b.contract, "issuedAt"), at("contract.expiresAt", b.contract, "expiresAt")
	started, ended := at("receipt.startedAt", b.receipt, "startedAt"), at("receipt.endedAt", b.receipt, "endedAt")
	wrong(started.Before(issued), "the run started before its contract was issued")
	wrong(started.After(expires), "the run started after its contract had expired")
	var last time.Time
	for i, e := range b.events {
		t := at(fmt.Sprintf("the time of event %d", i), e, "ts")
		wrong(t.Before(last), fmt.Sprintf("event %d is older than the one before", i))
		last = t
		if i == 0 {
			wrong(!t.Equal(started), "receipt.startedAt is not the time of the first event")
		}
		if i == len(b.events)-1 {
			wrong(!t.Equal(ended), "receipt.endedAt is not the time of the last event")
		}
	}
}

// strictOrder holds the order of the events: one end, and it is the last; who
// claimed the run is who signed.
func (b *bundle) strictOrder(r *reader, wrong func(bool, string)) {
	for i, e := range b.events {
		wrong(r.text(e, "version") != chain.Version, fmt.Sprintf("event %d has another version", i))
		typ := r.text(e, "event", "type")
		wrong(terminal[typ] != "" && i != len(b.events)-1, fmt.Sprintf("event %d, %s, ends the run, and more events follow", i, typ))
	}
	claims := b.of(r, "run.claimed")
	wrong(len(claims) > 1, "the run was claimed more than once")
	for _, e := range claims {
		wrong(r.text(e, "event", "runnerId") != r.text(b.receipt, "runner", "runnerId") || r.text(e, "event", "runnerKeyId") != r.text(b.receipt, "runner", "keyId"),
			"the run was claimed by another runner")
	}
	for _, e := range b.of(r, "workspace.materialized") {
		wrong(r.text(e, "event", "manifestHash") != r.text(b.receipt, "workspaceIn", "manifestHash"), "the workspace that was materialized is another")
	}
	for _, e := range b.of(r, "command.executed") {
		failed := r.number(e, "event", "exitCode") != 0
		wrong(failed && r.text(b.receipt, "status") == format.StatusCompleted, "the command failed, and the receipt says completed")
	}
}

// strictNetwork holds the hosts that were reached against those of the contract.
func (b *bundle) strictNetwork(r *reader, wrong func(bool, string)) {
	if deny, ok := r.get(b.contract, "network", "defaultDeny").(bool); ok && !deny {
		return
	}
	may := map[string]bool{}
	var suffixes []string
	var prefixes []netip.Prefix
	for _, h := range r.array(b.contract, "network", "allowHosts") {
		s, ok := h.(string)
		if !ok {
			r.fail([]string{"network", "allowHosts"}, "an array of strings")
		}
		if rest, wild := strings.CutPrefix(s, "*"); wild {
			suffixes = append(suffixes, rest)
		}
		if p, err := netip.ParsePrefix(s); err == nil {
			prefixes = append(prefixes, p)
		}
		may[s] = true
	}
	seen := map[string]bool{}
	for _, e := range b.of(r, "network.connected") {
		host := r.text(e, "event", "host")
		if r.text(e, "event", "decision") != "allowed" || may[host] || seen[host] {
			continue
		}
		seen[host] = true
		addr, _ := netip.ParseAddr(host)
		wrong(!slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(host, s) }) &&
			!slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) }),
			fmt.Sprintf("%q was reached, which the contract does not allow", host))
	}
}
