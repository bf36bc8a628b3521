// Command readers reads an attestation with the libraries of those who defined its
// formats, and prints what they made of it.
//
//	readers ENVELOPE ENTRY KEY.pem
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	statement "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
	"github.com/sigstore/rekor/pkg/generated/models"
	"github.com/sigstore/rekor/pkg/types"
	_ "github.com/sigstore/rekor/pkg/types/dsse/v0.0.1"
	"google.golang.org/protobuf/encoding/protojson"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Println("wrong:", err)
		os.Exit(1)
	}
}

func run(envelopeFile, entryFile, keyFile string) error {
	text, err := os.ReadFile(envelopeFile)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	key, err := signerverifier.LoadKey(pem)
	if err != nil {
		return err
	}
	ed, err := signerverifier.NewED25519SignerVerifierFromSSLibKey(key)
	if err != nil {
		return err
	}
	var e dsse.Envelope
	if err := json.Unmarshal(bytes.TrimSpace(text), &e); err != nil {
		return err
	}
	e.Signatures[0].KeyID = "" // each tool names keys its own way
	v, err := dsse.NewEnvelopeVerifier(ed)
	if err != nil {
		return err
	}
	if _, err := v.Verify(context.Background(), &e); err != nil {
		return fmt.Errorf("DSSE: %w", err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		return err
	}
	var s statement.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		return fmt.Errorf("in-toto: %w", err)
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("in-toto: %w", err)
	}
	predicate, err := s.Predicate.MarshalJSON()
	if err != nil {
		return err
	}
	var p provenance.Provenance
	if err := protojson.Unmarshal(predicate, &p); err != nil {
		return fmt.Errorf("SLSA: %w", err)
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("SLSA: %w", err)
	}
	entry, err := os.ReadFile(entryFile)
	if err != nil {
		return err
	}
	proposed, err := models.UnmarshalProposedEntry(bytes.NewReader(entry), jsonConsumer{})
	if err != nil {
		return fmt.Errorf("Rekor: %w", err)
	}
	impl, err := types.UnmarshalEntry(proposed)
	if err != nil {
		return fmt.Errorf("Rekor: %w", err)
	}
	kept, err := types.CanonicalizeEntry(context.Background(), impl)
	if err != nil {
		return fmt.Errorf("Rekor: %w", err)
	}
	fmt.Println(s.GetPredicateType(), p.GetRunDetails().GetMetadata().GetInvocationId())
	fmt.Println(string(kept))
	return nil
}

type jsonConsumer struct{}

func (jsonConsumer) Consume(r io.Reader, v any) error {
	return json.NewDecoder(r).Decode(v)
}
