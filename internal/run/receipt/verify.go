// Package receipt verifies the signed record of a run: what was ordered, what happened,
// and who says so.
//
//	problems := receipt.Verify(bundle, receipt.Options{Strict: true})
//
// Packages below it hold the formats (format), the chain of events (chain) and the JSON
// that is hashed (canonical): byte for byte those of an existing control plane, so that
// either side's verifier accepts the other's receipts; see docs/receipts.md. All of it
// is pure: no files, no clock, no network. Package ledger keeps the record of a run
// under way on disk.
package receipt

import (
	"fmt"
	"slices"
	"strings"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// Options say how to verify a bundle.
type Options struct {
	// Strict also checks what the signatures cover but the format's own verifier
	// leaves alone: see verifyStrict.
	Strict bool

	// Pending takes a receipt that who ordered the run has not signed yet: the plane's
	// signatures and its key are not looked at.
	Pending bool

	// Pinned are IDs of keys that the reader knows (see [format.KeyID]). Both keys of the
	// bundle must be among them. None: the keys are taken from the bundle, which then
	// proves that it is whole and not who made it.
	Pinned []string
}

// Verify lists everything that is wrong with a bundle, in the order of the format's
// own verifier; none: it is good. It never fails otherwise.
func Verify(text []byte, o Options) (problems []string) {
	v, err := canonical.Parse(text)
	if err != nil {
		return []string{"bundle is malformed: " + err.Error()}
	}
	r := reader{}
	b := bundle{
		contract: r.object(v, "contract"), receipt: r.object(v, "receipt"), events: r.array(v, "events"),
		planePEM: r.text(v, "keys", "planePublicKeyPem"), runnerPEM: r.text(v, "keys", "runnerPublicKeyPem"),
	}
	if version := r.text(v, "version"); r.err == nil && version != format.VersionBundle {
		r.err = fmt.Errorf("its version is %q, not %q", version, format.VersionBundle)
	}
	if r.err == nil {
		problems = b.verify(&r, o)
	}
	if r.err != nil {
		return append(problems, "bundle is malformed: "+r.err.Error())
	}
	return problems
}

// reader takes members out of parsed JSON and keeps the first error. Names are
// compared exactly.
type reader struct{ err error }

// get follows names into v; nil when something is not there.
func (r *reader) get(v any, names ...string) any {
	for i, name := range names {
		o, ok := v.(canonical.Object)
		if !ok {
			r.fail(names[:i], "an object")
			return nil
		}
		v = o[name]
	}
	return v
}

func (r *reader) fail(names []string, want string) {
	if r.err == nil {
		where := strings.Join(names, ".")
		if where == "" {
			where = "the text"
		}
		r.err = fmt.Errorf("%s is not %s", where, want)
	}
}

func (r *reader) text(v any, names ...string) string {
	s, ok := r.get(v, names...).(string)
	if !ok {
		r.fail(names, "a string")
	}
	return s
}

// optional is text that need not be there.
func (r *reader) optional(v any, names ...string) string {
	if r.get(v, names...) == nil {
		return ""
	}
	return r.text(v, names...)
}

func (r *reader) number(v any, names ...string) float64 {
	f, ok := r.get(v, names...).(float64)
	if !ok {
		r.fail(names, "a number")
	}
	return f
}

func (r *reader) object(v any, names ...string) canonical.Object {
	o, ok := r.get(v, names...).(canonical.Object)
	if !ok {
		r.fail(names, "an object")
	}
	return o
}

func (r *reader) array(v any, names ...string) []any {
	a, ok := r.get(v, names...).([]any)
	if !ok {
		r.fail(names, "an array")
	}
	return a
}

// bundle is a parsed bundle.
type bundle struct {
	contract, receipt   canonical.Object
	events              []any
	planePEM, runnerPEM string
}

// verify holds a bundle against itself. The order of the checks is that of the
// problems.
func (b *bundle) verify(r *reader, o Options) (problems []string) {
	wrong := func(is bool, problem string) {
		if is {
			problems = append(problems, problem)
		}
	}
	genesis, err := format.HashWithout(b.contract, "signatures")
	if err != nil {
		r.err = err
		return nil
	}
	digest, err := format.HashWithout(b.receipt, "signatures")
	if err != nil {
		r.err = err
		return nil
	}
	wrong(!o.Pending && !b.signedBy(r, b.contract, format.SignerPlane, b.planePEM, genesis), "contract plane signature invalid")
	wrong(r.text(b.receipt, "runId") != r.text(b.contract, "runId"), "receipt.runId does not match the contract")
	wrong(r.text(b.receipt, "contractHash") != genesis, "receipt.contractHash does not match the contract")
	wrong(r.text(b.receipt, "runner", "keyId") != format.KeyID(b.runnerPEM), "receipt runner key id does not match the enrolled runner key")
	wrong(r.text(b.receipt, "runner", "pool") != r.text(b.contract, "runner", "pool"), "receipt runner pool does not match the contract")
	wrong(!b.signedBy(r, b.receipt, format.SignerRunner, b.runnerPEM, digest), "receipt runner signature invalid")
	if broken := verifyChain(b.events, genesis); broken != "" {
		problems = append(problems, broken)
	}
	b.verifyEnd(r, wrong)
	manifest, err := canonical.Encode(nil, b.contract["workspace"])
	if err != nil {
		r.err = err
		return problems
	}
	wrong(r.text(b.receipt, "workspaceIn", "baseRef") != r.text(b.contract, "workspace", "baseRef"), "receipt.workspaceIn.baseRef does not match the contract")
	wrong(r.text(b.receipt, "workspaceIn", "manifestHash") != canonical.Sum(manifest), "receipt.workspaceIn.manifestHash does not match the contract")
	wrong(!slices.Equal(b.released(r), b.claimedReleases(r)), "secretsReleased does not match secret.released events")
	diff := r.text(b.receipt, "workspaceOut", "diffHash")
	wrong(diff != "" && !slices.Contains(b.artifacts(r, "diff"), diff), "workspaceOut.diffHash has no matching artifact.created event")
	wrong(!o.Pending && !b.signedBy(r, b.receipt, format.SignerPlane, b.planePEM, digest), "receipt plane countersignature invalid")
	if o.Strict {
		b.verifyStrict(r, wrong)
	}
	if len(o.Pinned) > 0 {
		for _, k := range []struct{ role, pem string }{{format.SignerPlane, b.planePEM}, {format.SignerRunner, b.runnerPEM}} {
			wrong(!slices.Contains(o.Pinned, format.KeyID(k.pem)), fmt.Sprintf("the %s key %s is none of those you know", k.role, format.KeyID(k.pem)))
		}
	}
	return problems
}

// verifyEnd holds what the receipt says of the chain against it.
func (b *bundle) verifyEnd(r *reader, wrong func(bool, string)) {
	head, last := "", ""
	if n := len(b.events); n > 0 {
		head = r.text(b.events[n-1], "hash")
		last = r.text(b.events[n-1], "event", "type")
	}
	wrong(len(b.events) == 0, "event chain is empty")
	wrong(len(b.events) > 0 && r.text(b.receipt, "eventsHead") != head, "receipt.eventsHead does not match the last event hash")
	wrong(r.number(b.receipt, "eventCount") != float64(len(b.events)), "receipt.eventCount does not match the event chain")
	status := r.text(b.receipt, "status")
	wrong(len(b.events) > 0 && (terminal[last] == "" || terminal[last] != status), "terminal event does not match receipt status")
}

// signedBy reports whether the first signature of o on behalf of signer is made by
// the key in pem over hash.
func (b *bundle) signedBy(r *reader, o canonical.Object, signer, pem, hash string) bool {
	for _, s := range r.array(o, "signatures") {
		if r.text(s, "signer") == signer {
			return r.text(s, "keyId") == format.KeyID(pem) && r.text(s, "alg") == "ed25519" && format.Signed(pem, hash, r.text(s, "sig"))
		}
	}
	return false
}

// of lists the events of a type, with their entries.
func (b *bundle) of(r *reader, typ string) (entries []canonical.Object) {
	for _, e := range b.events {
		if r.text(e, "event", "type") == typ {
			entries = append(entries, e.(canonical.Object))
		}
	}
	return entries
}

// released are the releases that the chain tells of, sorted.
func (b *bundle) released(r *reader) []string {
	var all []string
	for _, e := range b.of(r, "secret.released") {
		all = append(all, r.text(e, "event", "name")+"\x00"+r.text(e, "event", "scope")+"\x00"+r.text(e, "ts"))
	}
	slices.Sort(all)
	return all
}

// claimedReleases are those that the receipt tells of, sorted.
func (b *bundle) claimedReleases(r *reader) []string {
	var all []string
	for _, s := range r.array(b.receipt, "secretsReleased") {
		all = append(all, r.text(s, "name")+"\x00"+r.text(s, "scope")+"\x00"+r.text(s, "ts"))
	}
	slices.Sort(all)
	return all
}

// artifacts are the hashes of the artifacts of a kind; "": of every kind.
func (b *bundle) artifacts(r *reader, kind string) (hashes []string) {
	for _, e := range b.of(r, "artifact.created") {
		if is := r.text(e, "event", "kind"); kind == "" || is == kind {
			hashes = append(hashes, r.text(e, "event", "hash"))
		}
	}
	return hashes
}

// Facts are what a person wants to know of a bundle.
type Facts struct {
	RunID, Status, Started, Ended string
	Isolation                     string
	Events                        int
	Network                       []format.NetworkAccess
	PlaneKey, RunnerKey           string // IDs
}

// RunnerKey is the public key of the runner in a bundle, which it does not verify.
func RunnerKey(text []byte) (pem string, err error) {
	v, err := canonical.Parse(text)
	if err != nil {
		return "", err
	}
	r := reader{}
	pem = r.text(v, "keys", "runnerPublicKeyPem")
	return pem, r.err
}

// Read takes the facts out of a bundle, which it does not verify.
func Read(text []byte) (Facts, error) {
	v, err := canonical.Parse(text)
	if err != nil {
		return Facts{}, err
	}
	r := reader{}
	f := Facts{
		RunID: r.text(v, "receipt", "runId"), Status: r.text(v, "receipt", "status"),
		Started: r.text(v, "receipt", "startedAt"), Ended: r.text(v, "receipt", "endedAt"),
		Isolation: r.optional(v, "receipt", "runner", "isolation"), Events: len(r.array(v, "events")),
		PlaneKey: format.KeyID(r.text(v, "keys", "planePublicKeyPem")), RunnerKey: format.KeyID(r.text(v, "keys", "runnerPublicKeyPem")),
	}
	if f.Isolation == "" {
		f.Isolation = "process"
	}
	for _, n := range r.array(v, "receipt", "networkAccessed") {
		f.Network = append(f.Network, format.NetworkAccess{Host: r.text(n, "host"), Decision: r.text(n, "decision")})
	}
	return f, r.err
}
