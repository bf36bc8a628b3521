package receipt

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

var epoch = time.Date(2026, 6, 11, 0, 0, 0, 0, time.UTC)

func testKey(t *testing.T, seed byte) format.Held {
	t.Helper()
	return format.Held(ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize)))
}

// releases is an event that only a control plane makes.
type releases struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
}

func (releases) EventType() string { return "secret.released" }

// creates is one that a runner with a workspace makes.
type creates struct {
	Kind string `json:"kind"`
	Hash string `json:"hash"`
}

func (creates) EventType() string { return "artifact.created" }

// good is the bundle of a run with a secret, a diff and two hosts.
func good(t *testing.T, plane, runner format.Key) format.Bundle {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c := format.Contract{
		Version: format.VersionContract, RunID: "run_test", IssuedAt: chain.Stamp(epoch), Issuer: format.Issuer{KeyID: format.KeyID(plane.PublicPEM()), Role: format.SignerPlane},
		RequestedBy: format.Actor{Kind: "human", ID: "alice"}, Agent: format.Agent{Kind: "command"}, Task: format.Task{Prompt: "echo hi"}, Runner: format.Pool{Pool: "default"},
		Workspace:  format.Manifest{Version: format.VersionManifest, BaseRef: "abc123", BundleHash: strings.Repeat("1", 64), UntrackedFiles: []format.ManifestFile{}, DeniedPatterns: []string{}, DeniedPaths: []string{}},
		PolicyHash: strings.Repeat("2", 64), Secrets: []format.Secret{{Name: "API_TOKEN", Scope: "pool:default"}},
		Network: format.Network{DefaultDeny: true, AllowHosts: []string{"api.example.com", "*.example.org", "203.0.113.0/24"}}, Disclosure: "minimal-context",
		ExpiresAt: chain.Stamp(epoch.Add(time.Hour)),
	}
	must(c.Sign(t.Context(), plane, format.SignerPlane))
	genesis, err := c.Hash()
	must(err)
	manifest, err := canonical.Hash(c.Workspace)
	must(err)
	links := chain.New(genesis)
	diff := strings.Repeat("d", 64)
	var entries []chain.Entry
	for i, e := range []chain.Event{
		chain.RunCreated{},
		chain.RunClaimed{RunnerID: "rnr_test", RunnerKeyID: format.KeyID(runner.PublicPEM())},
		releases{"API_TOKEN", "pool:default"},
		chain.WorkspaceMaterialized{ManifestHash: manifest},
		chain.NetworkConnected{Host: "api.example.com", Decision: "allowed"},
		chain.NetworkConnected{Host: "evil.test", Decision: "blocked"},
		chain.NetworkConnected{Host: "api.example.com", Decision: "allowed"},
		chain.CommandExecuted{ArgvHash: strings.Repeat("3", 64), ExitCode: 0},
		creates{"diff", diff},
		chain.RunCompleted{},
	} {
		entry, err := links.Append(epoch.Add(time.Duration(i)*time.Second), e)
		must(err)
		entries = append(entries, entry)
	}
	head, count := links.Head()
	r := format.Receipt{
		Version: format.VersionReceipt, RunID: c.RunID, ContractHash: genesis,
		Runner:    format.Runner{RunnerID: "rnr_test", KeyID: format.KeyID(runner.PublicPEM()), Pool: "default", AttestationTier: "mock", Isolation: "process"},
		StartedAt: entries[0].Time, EndedAt: entries[count-1].Time, Status: format.StatusCompleted, EventsHead: head, EventCount: count,
		WorkspaceIn: format.WorkspaceIn{BaseRef: "abc123", ManifestHash: manifest}, WorkspaceOut: format.WorkspaceOut{DiffHash: diff, ArtifactHashes: []string{diff}},
		SecretsReleased: []format.Released{{Name: "API_TOKEN", Scope: "pool:default", Time: entries[2].Time}},
		NetworkAccessed: []format.NetworkAccess{{Host: "api.example.com", Decision: "allowed"}, {Host: "evil.test", Decision: "blocked"}},
		ModelsUsed:      []format.Model{}, BoundaryDisclosures: []format.Disclosure{},
	}
	must(r.Sign(t.Context(), runner, format.SignerRunner))
	must(r.Sign(t.Context(), plane, format.SignerPlane))
	return format.Bundle{Version: format.VersionBundle, Contract: c, Receipt: r, Events: entries, Keys: format.Keys{Plane: plane.PublicPEM(), Runner: runner.PublicPEM()}}
}

// text is a bundle as a file has it, and as something to change.
func text(t *testing.T, b format.Bundle) []byte {
	t.Helper()
	out, err := canonical.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tree(t *testing.T, b []byte) canonical.Object {
	t.Helper()
	v, err := canonical.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return v.(canonical.Object)
}

func TestGood(t *testing.T) {
	plane, runner := testKey(t, 1), testKey(t, 2)
	b := text(t, good(t, plane, runner))
	pinned := []string{format.KeyID(plane.PublicPEM()), format.KeyID(runner.PublicPEM())}
	if problems := Verify(b, Options{Strict: true, Pinned: pinned}); problems != nil {
		t.Error(problems)
	}
	// White space and the order of members mean nothing.
	pretty, err := json.MarshalIndent(json.RawMessage(b), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if problems := Verify(pretty, Options{Strict: true}); problems != nil {
		t.Error(problems)
	}
	f, err := Read(b)
	if err != nil || f.RunID != "run_test" || f.Events != 10 || len(f.Network) != 2 || f.RunnerKey != pinned[1] {
		t.Error(f, err)
	}
}

// at follows a path such as receipt/runner/pool, or events/3/event, and gives what
// holds the last name.
func at(t *testing.T, o canonical.Object, path string) (canonical.Object, string) {
	t.Helper()
	names := strings.Split(path, "/")
	var v any = o
	for _, name := range names[:len(names)-1] {
		switch is := v.(type) {
		case canonical.Object:
			v = is[name]
		case []any:
			v = is[int(name[0]-'0')]
		}
	}
	holder, ok := v.(canonical.Object)
	if !ok {
		t.Fatalf("%s is not there", path)
	}
	return holder, names[len(names)-1]
}

// What anybody on the way may change: each is found by a reader who trusts the keys.
func TestTampered(t *testing.T) {
	plane, runner, other := testKey(t, 1), testKey(t, 2), testKey(t, 3)
	b := text(t, good(t, plane, runner))
	set := func(path string, value any) func(*testing.T, canonical.Object) {
		return func(t *testing.T, o canonical.Object) {
			holder, name := at(t, o, path)
			holder[name] = value
		}
	}
	events := func(change func([]any) []any) func(*testing.T, canonical.Object) {
		return func(_ *testing.T, o canonical.Object) { o["events"] = change(o["events"].([]any)) }
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, canonical.Object)
		want   string
	}{
		{"run", set("receipt/runId", "run_other"), "receipt.runId does not match the contract"},
		{"contract hash", set("receipt/contractHash", strings.Repeat("0", 64)), "receipt.contractHash does not match the contract"},
		{"runner key id", set("receipt/runner/keyId", format.KeyID(other.PublicPEM())), "receipt runner key id does not match the enrolled runner key"},
		{"runner key", set("keys/runnerPublicKeyPem", other.PublicPEM()), "receipt runner signature invalid"},
		{"plane key", set("keys/planePublicKeyPem", other.PublicPEM()), "contract plane signature invalid"},
		{"plane key, countersignature", set("keys/planePublicKeyPem", other.PublicPEM()), "receipt plane countersignature invalid"},
		{"key that is none", set("keys/runnerPublicKeyPem", "junk"), "receipt runner signature invalid"},
		{"pool", set("receipt/runner/pool", "other"), "receipt runner pool does not match the contract"},
		{"status", set("receipt/status", "failed"), "terminal event does not match receipt status"},
		{"started", set("receipt/startedAt", "2026-06-11T00:00:01.000Z"), "receipt runner signature invalid"},
		{"tier", set("receipt/runner/attestationTier", "cpu-tee"), "receipt runner signature invalid"},
		{"isolation", set("receipt/runner/isolation", "hermetic"), "receipt plane countersignature invalid"},
		{"network", set("receipt/networkAccessed", []any{}), "receipt runner signature invalid"},
		{"cost added", set("receipt/costUsd", 0.0), "receipt runner signature invalid"},
		{"head", set("receipt/eventsHead", strings.Repeat("0", 64)), "receipt.eventsHead does not match the last event hash"},
		{"count", set("receipt/eventCount", 9.0), "receipt.eventCount does not match the event chain"},
		{"base", set("receipt/workspaceIn/baseRef", "def"), "receipt.workspaceIn.baseRef does not match the contract"},
		{"manifest", set("receipt/workspaceIn/manifestHash", "def"), "receipt.workspaceIn.manifestHash does not match the contract"},
		{"diff", set("receipt/workspaceOut/diffHash", strings.Repeat("e", 64)), "workspaceOut.diffHash has no matching artifact.created event"},
		{"no secret", set("receipt/secretsReleased", []any{}), "secretsReleased does not match secret.released events"},
		{"task", set("contract/task/prompt", "echo ho"), "contract plane signature invalid"},
		{"hosts", set("contract/network/allowHosts", []any{"*"}), "receipt.contractHash does not match the contract"},
		{"expiry", set("contract/expiresAt", "2099-01-01T00:00:00.000Z"), "event chain broken at seq 0: prev hash mismatch"},
		{"event", set("events/5/event/host", "good.test"), "event chain broken at seq 5: event hash mismatch"},
		{"exit code", set("events/7/event/exitCode", 1.0), "event chain broken at seq 7: event hash mismatch"},
		{"event time", set("events/3/ts", "2026-06-11T00:00:09.000Z"), "event chain broken at seq 3: event hash mismatch"},
		{"event number", set("events/3/seq", 4.0), "event chain broken at seq 3: sequence gap"},
		{"event number as text", set("events/3/seq", "3"), "event chain broken at seq 3: sequence gap"},
		{"event gone", events(func(e []any) []any { return slices.Delete(e, 5, 6) }), "event chain broken at seq 5: sequence gap"},
		{"events swapped", events(func(e []any) []any { e[4], e[5] = e[5], e[4]; return e }), "event chain broken at seq 4: sequence gap"},
		{"last event gone", events(func(e []any) []any { return e[:len(e)-1] }), "receipt.eventsHead does not match the last event hash"},
		{"no events", events(func([]any) []any { return []any{} }), "event chain is empty"},
		{"event twice", events(func(e []any) []any { return append(e, e[len(e)-1]) }), "event chain broken at seq 10: sequence gap"},
		{"no signature", set("receipt/signatures", []any{}), "receipt runner signature invalid"},
		{"no countersignature", func(_ *testing.T, o canonical.Object) {
			r := o["receipt"].(canonical.Object)
			r["signatures"] = r["signatures"].([]any)[:1]
		}, "receipt plane countersignature invalid"},
		{"contract signature as receipt's", func(_ *testing.T, o canonical.Object) {
			o["receipt"].(canonical.Object)["signatures"] = o["contract"].(canonical.Object)["signatures"]
		}, "receipt plane countersignature invalid"},
		{"algorithm", func(_ *testing.T, o canonical.Object) {
			o["receipt"].(canonical.Object)["signatures"].([]any)[0].(canonical.Object)["alg"] = "none"
		}, "receipt runner signature invalid"},
		{"version", set("version", "warrant.bundle.v2"), "bundle is malformed: its version"},
		{"receipt is a list", set("receipt", []any{}), "bundle is malformed: receipt is not an object"},
		{"event is null", events(func(e []any) []any { e[2] = nil; return e }), "event chain broken at seq 2: missing entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := tree(t, b)
			c.change(t, o)
			changed, err := canonical.Encode(nil, o)
			if err != nil {
				t.Fatal(err)
			}
			problems := Verify(changed, Options{})
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, c.want) }) {
				t.Errorf("got %q, want %q", problems, c.want)
			}
		})
	}
}

// Whatever byte is changed, the bundle no longer verifies: a sample of positions.
func TestEveryByte(t *testing.T) {
	b := text(t, good(t, testKey(t, 1), testKey(t, 2)))
	for i := 0; i < len(b); i += 7 {
		changed := slices.Clone(b)
		changed[i] ^= 1
		if problems := Verify(changed, Options{Strict: true}); problems == nil {
			t.Errorf("byte %d: %.20q is taken for %.20q", i, changed[i:], b[i:])
		}
	}
}

// Names are compared exactly: encoding/json would take RUNID for runId.
func TestNamesAreExact(t *testing.T) {
	b := string(text(t, good(t, testKey(t, 1), testKey(t, 2))))
	if problems := Verify([]byte(strings.ReplaceAll(b, `"receipt":`, `"RECEIPT":`)), Options{}); problems == nil {
		t.Error("RECEIPT is taken for receipt")
	}
	if problems := Verify([]byte(strings.Replace(b, `{"contract":`, `{"version":"warrant.bundle.v1","contract":`, 1)), Options{}); problems == nil {
		t.Error("a member that comes twice is taken")
	}
}

// What a runner may claim that signs it all: only a strict reader finds it.
func TestStrict(t *testing.T) {
	plane, runner := testKey(t, 1), testKey(t, 2)
	for _, c := range []struct {
		name   string
		change func(*format.Contract, *format.Receipt, *[]chain.Event)
		want   string
	}{
		{"host left out", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) {
			r.NetworkAccessed = r.NetworkAccessed[:1]
		}, "networkAccessed does not match network.connected events"},
		{"host made up", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) {
			r.NetworkAccessed = append(r.NetworkAccessed, format.NetworkAccess{Host: "x.test", Decision: "blocked"})
		}, "networkAccessed does not match network.connected events"},
		{"artifact left out", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) {
			r.WorkspaceOut.ArtifactHashes = []string{}
		}, "workspaceOut.artifactHashes does not match"},
		{"diff left out", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) { r.WorkspaceOut.DiffHash = "" }, "workspaceOut.diffHash is empty"},
		{"model made up", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) {
			r.ModelsUsed = []format.Model{{Provider: "a", Model: "b"}}
		}, "modelsUsed does not match"},
		{"disclosure made up", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) {
			r.BoundaryDisclosures = []format.Disclosure{{Direction: "out", ContentHash: "x", DataClass: "y"}}
		}, "boundaryDisclosures does not match"},
		{"later start", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) {
			r.StartedAt = chain.Stamp(epoch.Add(time.Second))
		}, "receipt.startedAt is not the time of the first event"},
		{"earlier end", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) { r.EndedAt = chain.Stamp(epoch) }, "receipt.endedAt is not the time of the last event"},
		{"no time", func(_ *format.Contract, r *format.Receipt, _ *[]chain.Event) { r.EndedAt = "soon" }, "receipt.endedAt is no time"},
		{"expired", func(c *format.Contract, _ *format.Receipt, _ *[]chain.Event) {
			c.ExpiresAt = chain.Stamp(epoch.Add(-time.Second))
		}, "the run started after its contract had expired"},
		{"before it was issued", func(c *format.Contract, _ *format.Receipt, _ *[]chain.Event) {
			c.IssuedAt = chain.Stamp(epoch.Add(time.Second))
		}, "the run started before its contract was issued"},
		{"weaker isolation", func(c *format.Contract, _ *format.Receipt, _ *[]chain.Event) { c.Isolation = "vercel-sandbox" }, "the contract orders isolation vercel-sandbox"},
		{"host outside the contract", func(c *format.Contract, _ *format.Receipt, _ *[]chain.Event) { c.Network.AllowHosts = []string{} }, `"api.example.com" was reached`},
		{"secret outside the contract", func(c *format.Contract, _ *format.Receipt, _ *[]chain.Event) { c.Secrets = []format.Secret{} }, `the secret "API_TOKEN" was released`},
		{"other runner", func(_ *format.Contract, _ *format.Receipt, e *[]chain.Event) {
			(*e)[1] = chain.RunClaimed{RunnerID: "rnr_x", RunnerKeyID: "k"}
		}, "the run was claimed by another runner"},
		{"two runners", func(_ *format.Contract, _ *format.Receipt, e *[]chain.Event) { (*e)[0] = (*e)[1] }, "the run was claimed more than once"},
		{"failed command", func(_ *format.Contract, _ *format.Receipt, e *[]chain.Event) {
			(*e)[7] = chain.CommandExecuted{ArgvHash: "x", ExitCode: 1}
		}, "the command failed"},
		{"events after the end", func(_ *format.Contract, _ *format.Receipt, e *[]chain.Event) { (*e)[4] = chain.RunCompleted{} }, "ends the run, and more events follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := resigned(t, plane, runner, c.change)
			if problems := Verify(b, Options{}); len(problems) > 0 {
				t.Fatalf("it is wrong in other ways: %q", problems)
			}
			problems := Verify(b, Options{Strict: true})
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("got %q, want %q", problems, c.want)
			}
		})
	}
}

// resigned is a good bundle with a change that both signers have signed.
func resigned(t *testing.T, plane, runner format.Key, change func(*format.Contract, *format.Receipt, *[]chain.Event)) []byte {
	t.Helper()
	b := good(t, plane, runner)
	events := make([]chain.Event, len(b.Events))
	for i, e := range b.Events {
		events[i] = rawEvent(e.Event)
	}
	change(&b.Contract, &b.Receipt, &events)
	b.Contract.Signatures, b.Receipt.Signatures = nil, nil
	genesis, err := b.Contract.Hash()
	if err != nil {
		t.Fatal(err)
	}
	links := chain.New(genesis)
	for i, e := range events {
		if b.Events[i], err = links.Append(epoch.Add(time.Duration(i)*time.Second), e); err != nil {
			t.Fatal(err)
		}
	}
	b.Receipt.ContractHash = genesis
	b.Receipt.EventsHead, _ = links.Head()
	ctx := context.Background()
	for _, err := range []error{
		b.Contract.Sign(ctx, plane, format.SignerPlane), b.Receipt.Sign(ctx, runner, format.SignerRunner), b.Receipt.Sign(ctx, plane, format.SignerPlane),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return text(t, b)
}

// rawEvent is an event that is there already.
type rawEvent json.RawMessage

func (e rawEvent) EventType() string {
	var v struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(e, &v)
	return v.Type
}

func (e rawEvent) MarshalJSON() ([]byte, error) { return e, nil }

func TestPinned(t *testing.T) {
	plane, runner := testKey(t, 1), testKey(t, 2)
	b := text(t, good(t, plane, runner))
	problems := Verify(b, Options{Pinned: []string{format.KeyID(plane.PublicPEM())}})
	if len(problems) != 1 || !strings.Contains(problems[0], "the runner key") {
		t.Error(problems)
	}
}
