// Package attest says of a verified run what others read: an in-toto statement with
// SLSA provenance, in a signed DSSE envelope, and the entry that a Rekor transparency
// log takes for it.
//
//	statement, err := attest.Statement(bundle)
//	envelope, err := attest.Sign(ctx, statement, key)
//	err = attest.Check(envelope, statement, publicPEM)
//	entry, err := attest.Entry(envelope, publicPEM)
//
// A statement follows from the bytes of a bundle alone, so whoever has the bundle can
// make it again and compare. The bundle must have been verified.
//
// Sources: in-toto Attestation Framework v1 (Statement), SLSA Provenance v1, DSSE v1,
// Rekor's type dsse 0.0.1.
package attest

import (
	"encoding/json"
	"fmt"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/execution"
	"egressd/internal/run/receipt/format"
)

// Types of what is written.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://slsa.dev/provenance/v1"
	BuildType     = "https://egressd.example.com/run/v1" // described in docs/receipts.md
	builderID     = "https://egressd.example.com/runner/"
)

// digests are hashes by algorithm, in hexadecimal.
type digests map[string]string

// resource is an in-toto ResourceDescriptor.
type resource struct {
	Name        string         `json:"name"`
	Digest      digests        `json:"digest,omitempty"`
	Annotations map[string]any `json:"annotations,omitempty"`
}

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type provenance struct {
	Build buildDefinition `json:"buildDefinition"`
	Run   runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	Type         string     `json:"buildType"`
	External     ordered    `json:"externalParameters"`
	Internal     runnerKind `json:"internalParameters"`
	Dependencies []resource `json:"resolvedDependencies"`
}

// ordered is what the contract orders.
type ordered struct {
	ContractHash string               `json:"contractHash"`
	RequestedBy  format.Actor         `json:"requestedBy"`
	Agent        format.Agent         `json:"agent"`
	Task         format.Task          `json:"task"`
	Execution    *execution.Execution `json:"execution,omitempty"`
	Isolation    string               `json:"isolation"`
	PolicyHash   string               `json:"policyHash"`
	Network      format.Network       `json:"network"`
	Secrets      []format.Secret      `json:"secrets"` // names
	Budget       format.Budget        `json:"budget"`
}

type runnerKind struct {
	Pool            string `json:"pool"`
	AttestationTier string `json:"attestationTier"`
	KeyID           string `json:"keyId"`
}

type runDetails struct {
	Builder    builder    `json:"builder"`
	Metadata   metadata   `json:"metadata"`
	Byproducts []resource `json:"byproducts"`
}

type builder struct {
	ID string `json:"id"`
}

type metadata struct {
	InvocationID string `json:"invocationId"`
	Started      string `json:"startedOn"`
	Finished     string `json:"finishedOn"`
}

// Statement is the statement about the run in a bundle, in canonical JSON. Its
// subjects are the bundle's own bytes, and what came out of the run.
func Statement(bundle []byte) ([]byte, error) {
	var b format.Bundle
	if err := json.Unmarshal(bundle, &b); err != nil {
		return nil, err
	}
	contract, err := b.Contract.Hash()
	if err != nil {
		return nil, err
	}
	c, r := b.Contract, b.Receipt
	s := statement{Type: StatementType, PredicateType: PredicateType, Subject: subjects(bundle, r.WorkspaceOut)}
	s.Predicate.Build = buildDefinition{
		Type: BuildType,
		External: ordered{
			ContractHash: contract, RequestedBy: c.RequestedBy, Agent: c.Agent, Task: c.Task, Execution: c.Execution,
			Isolation: isolation(c.Isolation), PolicyHash: c.PolicyHash, Network: c.Network, Secrets: c.Secrets, Budget: c.Budget,
		},
		Internal:     runnerKind{Pool: r.Runner.Pool, AttestationTier: r.Runner.AttestationTier, KeyID: r.Runner.KeyID},
		Dependencies: dependencies(c.Workspace),
	}
	s.Predicate.Run = runDetails{
		Builder:  builder{ID: builderID + r.Runner.RunnerID},
		Metadata: metadata{InvocationID: r.RunID, Started: r.StartedAt, Finished: r.EndedAt},
		Byproducts: []resource{{Name: "events", Digest: digests{"sha256": r.EventsHead}, Annotations: map[string]any{
			"count": r.EventCount, "status": r.Status, "isolation": isolation(r.Runner.Isolation), "networkAccessed": r.NetworkAccessed,
			"secretsReleased": r.SecretsReleased, "modelsUsed": r.ModelsUsed,
		}}},
	}
	return canonical.Marshal(s)
}

func isolation(name string) string {
	if name == "" {
		return "process"
	}
	return name
}

// subjects are the files that the statement is about, as sha256sum hashes them.
func subjects(bundle []byte, out format.WorkspaceOut) []resource {
	all := []resource{{Name: "bundle.json", Digest: digests{"sha256": canonical.Sum(bundle)}}}
	if out.DiffHash != "" {
		all = append(all, resource{Name: "workspace.diff", Digest: digests{"sha256": out.DiffHash}})
	}
	n := 0
	for _, hash := range out.ArtifactHashes {
		if hash != out.DiffHash {
			n++
			all = append(all, resource{Name: fmt.Sprintf("artifact-%d", n), Digest: digests{"sha256": hash}})
		}
	}
	return all
}

// dependencies are what the run began with.
func dependencies(m format.Manifest) []resource {
	all := []resource{}
	add := func(name, algorithm, hash string) {
		if hash != "" {
			all = append(all, resource{Name: name, Digest: digests{algorithm: hash}})
		}
	}
	if n := len(m.BaseRef); n == 40 || n == 64 { // SHA-1, SHA-256: others are no commits
		add("commit", "gitCommit", m.BaseRef)
	}
	add("workspace.bundle", "sha256", m.BundleHash)
	add("workspace.dirty.diff", "sha256", m.DirtyDiffHash)
	for _, f := range m.UntrackedFiles {
		add(f.Path, "sha256", f.Hash)
	}
	return all
}
