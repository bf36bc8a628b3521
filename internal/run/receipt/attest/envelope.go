package attest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// PayloadType is that of in-toto statements.
const PayloadType = "application/vnd.in-toto+json"

// The errors of Check.
var (
	ErrSignature = errors.New("its signature is not that of the key that ran the run")
	ErrStatement = errors.New("what it says is not what follows from this bundle")
)

// envelope is a DSSE envelope. The ten lines are our own: the library for it (github.com/secure-systems-lab/go-securesystemslib
// v0.11.1) brings golang.org/x/crypto/ssh along and prints to the standard output.
type envelope struct {
	Payload     string      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// pae is what is signed: DSSE's pre-authentication encoding of a type and a payload.
func pae(payloadType string, payload []byte) []byte {
	b := append([]byte("DSSEv1 "), strconv.Itoa(len(payloadType))+" "+payloadType+" "+strconv.Itoa(len(payload))+" "...)
	return append(b, payload...)
}

// Sign puts a statement into a signed envelope, in JSON.
func Sign(ctx context.Context, statement []byte, key format.Key) ([]byte, error) {
	sig, err := key.Sign(ctx, pae(PayloadType, statement))
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{
		Payload: base64.StdEncoding.EncodeToString(statement), PayloadType: PayloadType,
		Signatures: []signature{{KeyID: format.KeyID(key.PublicPEM()), Sig: base64.StdEncoding.EncodeToString(sig)}},
	})
}

// Check reports whether an envelope holds this statement, signed with the key in pem:
// nil, [ErrSignature], [ErrStatement], or why it cannot be read.
func Check(text, statement []byte, pem string) error {
	e, payload, err := open(text)
	if err != nil {
		return err
	}
	if e.PayloadType != PayloadType {
		return fmt.Errorf("its payload is %q, not %q", e.PayloadType, PayloadType)
	}
	signed := string(pae(e.PayloadType, payload))
	good := false
	for _, s := range e.Signatures {
		good = good || format.Signed(pem, signed, s.Sig)
	}
	switch {
	case !good:
		return ErrSignature
	case !bytes.Equal(payload, statement):
		return ErrStatement
	}
	return nil
}

func open(text []byte) (e envelope, payload []byte, err error) {
	if _, err = canonical.Parse(text); err == nil { // a member twice would be read in two ways
		err = json.Unmarshal(text, &e)
	}
	if err == nil {
		payload, err = base64.StdEncoding.DecodeString(e.Payload)
	}
	if err != nil {
		return e, nil, fmt.Errorf("it is no DSSE envelope: %w", err)
	}
	return e, payload, nil
}

// Log is what a transparency log is told of an envelope, and what it keeps.
type Log struct {
	Entry        []byte // to be posted to a log: JSON of a proposed entry
	EnvelopeHash string // SHA-256, in hexadecimal
	PayloadHash  string
}

// Entry makes the entry of a Rekor log for an envelope that is signed with the key in
// pem: type dsse, version 0.0.1.
func Entry(text []byte, pem string) (Log, error) {
	_, payload, err := open(text)
	if err != nil {
		return Log{}, err
	}
	type content struct {
		Envelope  string   `json:"envelope"`
		Verifiers []string `json:"verifiers"` // PEM, in base64
	}
	type spec struct {
		Content content `json:"proposedContent"`
	}
	entry, err := json.Marshal(struct {
		Version string `json:"apiVersion"`
		Kind    string `json:"kind"`
		Spec    spec   `json:"spec"`
	}{"0.0.1", "dsse", spec{content{string(text), []string{base64.StdEncoding.EncodeToString([]byte(pem))}}}})
	return Log{Entry: entry, EnvelopeHash: canonical.Sum(text), PayloadHash: canonical.Sum(payload)}, err
}
