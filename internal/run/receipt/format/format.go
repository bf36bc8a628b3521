// Package format is what a signed run is written as: the contract that orders it, the
// receipt of what happened, and the bundle that holds both. Names and members are
// those of an existing control plane (warrant.*.v1).
//
//	hash, err := contract.Hash()
//	err = contract.Sign(ctx, key, format.SignerPlane)
//
// Public keys are Ed25519 in PEM; a key's ID is the beginning of that text's hash.
package format

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/execution"
)

// Versions of the formats.
const (
	VersionContract = "warrant.contract.v1"
	VersionReceipt  = "warrant.receipt.v1"
	VersionManifest = "warrant.manifest.v1"
	VersionBundle   = "warrant.bundle.v1"
)

// Signers: on whose behalf a signature is made.
const (
	SignerPlane  = "plane"
	SignerRunner = "runner"
)

// The statuses that a receipt can have.
const (
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// Bundle is everything that it takes to verify a run offline. Its keys prove that it
// is whole; that they are the right ones, only the reader can know.
type Bundle struct {
	Version  string        `json:"version"`
	Contract Contract      `json:"contract"`
	Receipt  Receipt       `json:"receipt"`
	Events   []chain.Entry `json:"events"`
	Keys     Keys          `json:"keys"`
}

// Keys are public keys in PEM.
type Keys struct {
	Plane  string `json:"planePublicKeyPem"`
	Runner string `json:"runnerPublicKeyPem"`
}

// Contract is what was ordered: a signed authorization of one run.
type Contract struct {
	Version     string               `json:"version"`
	RunID       string               `json:"runId"`
	IssuedAt    string               `json:"issuedAt"`
	Issuer      Issuer               `json:"issuer"`
	RequestedBy Actor                `json:"requestedBy"`
	Agent       Agent                `json:"agent"`
	Task        Task                 `json:"task"`
	Runner      Pool                 `json:"runner"`
	Workspace   Manifest             `json:"workspace"`
	PolicyHash  string               `json:"policyHash"`
	Secrets     []Secret             `json:"secrets"`
	Network     Network              `json:"network"`
	Budget      Budget               `json:"budget"`
	Disclosure  string               `json:"disclosure"`
	Execution   *execution.Execution `json:"execution,omitempty"`
	Isolation   string               `json:"isolation,omitempty"` // "": process
	ExpiresAt   string               `json:"expiresAt"`
	Signatures  []Signature          `json:"signatures"`

	raw json.RawMessage // as it was read: what others put in is kept, and hashed; nil: it was made here
}

// Parts of a contract.
type (
	// Issuer is the key that a contract is signed with.
	Issuer struct {
		KeyID string `json:"keyId"`
		Role  string `json:"role"`
	}
	// Actor is a person or a service.
	Actor struct {
		Kind string `json:"kind"` // human or service
		ID   string `json:"id"`
	}
	// Agent is the kind of program that runs.
	Agent struct {
		Kind string `json:"kind"`
	}
	// Task is what it is told to do.
	Task struct {
		Prompt string `json:"prompt"`
	}
	// Pool names the runners that may claim the run.
	Pool struct {
		Pool string `json:"pool"`
	}
	// Manifest is the workspace that a run begins with. Hashes are "" for what was
	// not captured.
	Manifest struct {
		Version        string         `json:"version"`
		BaseRef        string         `json:"baseRef"`
		BundleHash     string         `json:"bundleHash"`
		DirtyDiffHash  string         `json:"dirtyDiffHash,omitempty"`
		UntrackedFiles []ManifestFile `json:"untrackedFiles"`
		DeniedPatterns []string       `json:"deniedPatterns"`
		DeniedPaths    []string       `json:"deniedPaths"`
	}
	// ManifestFile is an untracked file.
	ManifestFile struct {
		Path  string `json:"path"`
		Hash  string `json:"hash"`
		Bytes int64  `json:"bytes"`
	}
	// Secret is a secret that the run may see, by name.
	Secret struct {
		Name  string `json:"name"`
		Scope string `json:"scope"`
	}
	// Network is what the run may reach.
	Network struct {
		DefaultDeny bool     `json:"defaultDeny"`
		AllowHosts  []string `json:"allowHosts"`
	}
	// Budget bounds a run; nil is no bound.
	Budget struct {
		MaxDurationMin *float64 `json:"maxDurationMin,omitempty"`
	}
	// Signature is one of an object whose hash it covers.
	Signature struct {
		KeyID     string `json:"keyId"`
		Algorithm string `json:"alg"` // ed25519
		Signer    string `json:"signer"`
		Value     string `json:"sig"` // base64
	}
)

// Receipt is what happened.
type Receipt struct {
	Version             string          `json:"version"`
	RunID               string          `json:"runId"`
	ContractHash        string          `json:"contractHash"`
	Runner              Runner          `json:"runner"`
	StartedAt           string          `json:"startedAt"`
	EndedAt             string          `json:"endedAt"`
	Status              string          `json:"status"`
	EventsHead          string          `json:"eventsHead"`
	EventCount          int             `json:"eventCount"`
	WorkspaceIn         WorkspaceIn     `json:"workspaceIn"`
	WorkspaceOut        WorkspaceOut    `json:"workspaceOut"`
	SecretsReleased     []Released      `json:"secretsReleased"`
	NetworkAccessed     []NetworkAccess `json:"networkAccessed"`
	ModelsUsed          []Model         `json:"modelsUsed"`
	BoundaryDisclosures []Disclosure    `json:"boundaryDisclosures"`
	Signatures          []Signature     `json:"signatures"`
}

// Parts of a receipt.
type (
	// Runner is who ran it.
	Runner struct {
		RunnerID        string `json:"runnerId"`
		KeyID           string `json:"keyId"`
		Pool            string `json:"pool"`
		AttestationTier string `json:"attestationTier"`
		Isolation       string `json:"isolation,omitempty"` // "": process
	}
	// WorkspaceIn is the workspace at the start.
	WorkspaceIn struct {
		BaseRef      string `json:"baseRef"`
		ManifestHash string `json:"manifestHash"`
	}
	// WorkspaceOut is what came of it; "": nothing was collected.
	WorkspaceOut struct {
		DiffHash       string   `json:"diffHash"`
		ArtifactHashes []string `json:"artifactHashes"`
	}
	// Released is a secret that the run has got.
	Released struct {
		Name  string `json:"name"`
		Scope string `json:"scope"`
		Time  string `json:"ts"`
	}
	// NetworkAccess is a host that was reached, or was not to be.
	NetworkAccess struct {
		Host     string `json:"host"`
		Decision string `json:"decision"` // allowed or blocked
	}
	// Model is a model that was called.
	Model struct {
		Provider string `json:"provider"`
		Model    string `json:"model"`
	}
	// Disclosure is content that crossed the boundary.
	Disclosure struct {
		Direction   string `json:"direction"`
		ContentHash string `json:"contentHash"`
		DataClass   string `json:"dataClass"`
	}
)

// members are those of a contract that the type knows, without its methods.
type members Contract

// UnmarshalJSON implements [json.Unmarshaler]. What is read stays as it is.
func (c *Contract) UnmarshalJSON(text []byte) error {
	var m members
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	*c = Contract(m)
	c.raw = bytes.Clone(text)
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (c Contract) MarshalJSON() ([]byte, error) {
	if c.raw != nil {
		return c.raw, nil
	}
	return json.Marshal(members(c))
}

// Hash is the hash of a contract without its signatures. An event chain begins with
// it.
func (c Contract) Hash() (string, error) {
	c.Signatures = nil
	return unsignedHash(c)
}

// Hash is the hash of a receipt without its signatures.
func (r Receipt) Hash() (string, error) {
	r.Signatures = nil
	return unsignedHash(r)
}

// unsignedHash is the hash of an object without the member signatures.
func unsignedHash(v any) (string, error) {
	text, err := canonical.Marshal(v)
	if err != nil {
		return "", err
	}
	parsed, err := canonical.Parse(text)
	if err != nil {
		return "", err
	}
	return HashWithout(parsed.(canonical.Object), "signatures")
}

// HashWithout is the hash of o without a member; o stays as it is.
func HashWithout(o canonical.Object, name string) (string, error) {
	rest := make(canonical.Object, len(o))
	for k, v := range o {
		if k != name {
			rest[k] = v
		}
	}
	text, err := canonical.Encode(nil, rest)
	if err != nil {
		return "", err
	}
	return canonical.Sum(text), nil
}

// Sign adds a signature on behalf of signer.
func (c *Contract) Sign(ctx context.Context, key Key, signer string) error {
	if c.raw != nil {
		return errors.New("this contract is somebody else's: it is signed already")
	}
	hash, err := c.Hash()
	if err != nil {
		return err
	}
	c.Signatures, err = sign(ctx, c.Signatures, key, signer, hash)
	return err
}

// SignedBy reports whether the plane's signature of c is that of the key in pem.
func (c Contract) SignedBy(pem string) bool {
	hash, err := c.Hash()
	return err == nil && signedBy(c.Signatures, SignerPlane, pem, hash)
}

// SignedBy reports whether the signature of r on behalf of signer is that of the key
// in pem.
func (r Receipt) SignedBy(signer, pem string) bool {
	hash, err := r.Hash()
	return err == nil && signedBy(r.Signatures, signer, pem, hash)
}

// signedBy judges the first signature on behalf of signer, as a verifier does.
func signedBy(all []Signature, signer, pem, hash string) bool {
	for _, s := range all {
		if s.Signer == signer {
			return s.KeyID == KeyID(pem) && s.Algorithm == "ed25519" && Signed(pem, hash, s.Value)
		}
	}
	return false
}

// Sign adds a signature on behalf of signer.
func (r *Receipt) Sign(ctx context.Context, key Key, signer string) error {
	hash, err := r.Hash()
	if err != nil {
		return err
	}
	r.Signatures, err = sign(ctx, r.Signatures, key, signer, hash)
	return err
}

// sign signs the text of a hash: 64 hexadecimal digits, not the 32 bytes.
func sign(ctx context.Context, have []Signature, key Key, signer, hash string) ([]Signature, error) {
	value, err := key.Sign(ctx, []byte(hash))
	if err != nil {
		return have, err
	}
	return append(slices.Clone(have), Signature{
		KeyID: KeyID(key.PublicPEM()), Algorithm: "ed25519", Signer: signer, Value: base64.StdEncoding.EncodeToString(value),
	}), nil
}
