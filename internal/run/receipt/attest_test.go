package receipt

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"egressd/internal/run/receipt/attest"
	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// attested is a good bundle and what is attested of it.
func attested(t *testing.T, key format.Key) (bundle, statement, envelope []byte) {
	t.Helper()
	bundle, err := json.Marshal(good(t, testKey(t, 1), key))
	if err != nil {
		t.Fatal(err)
	}
	if statement, err = attest.Statement(bundle); err != nil {
		t.Fatal(err)
	}
	if envelope, err = attest.Sign(t.Context(), statement, key); err != nil {
		t.Fatal(err)
	}
	return bundle, statement, envelope
}

// A statement names the bundle's bytes and what came out, says what was ordered, and
// is the same each time.
func TestStatement(t *testing.T) {
	bundle, statement, _ := attested(t, testKey(t, 2))
	var s struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				BuildType            string
				ExternalParameters   map[string]any
				ResolvedDependencies []any
			}
			RunDetails struct {
				Metadata struct{ InvocationID, StartedOn, FinishedOn string }
			}
		}
	}
	if err := json.Unmarshal(statement, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 2 || s.Subject[0].Digest["sha256"] != canonical.Sum(bundle) || s.Subject[1].Digest["sha256"] != strings.Repeat("d", 64) {
		t.Errorf("subjects %+v", s.Subject)
	}
	if s.Type != attest.StatementType || s.PredicateType != attest.PredicateType || s.Predicate.BuildDefinition.BuildType != attest.BuildType {
		t.Error(s.Type, s.PredicateType, s.Predicate.BuildDefinition.BuildType)
	}
	if m := s.Predicate.RunDetails.Metadata; m.InvocationID != "run_test" || m.StartedOn == "" || m.FinishedOn <= m.StartedOn {
		t.Errorf("%+v", m)
	}
	if p := s.Predicate.BuildDefinition.ExternalParameters; p["policyHash"] != strings.Repeat("2", 64) || p["network"] == nil {
		t.Errorf("%v", p)
	}
	again, err := attest.Statement(bundle)
	if err != nil || !bytes.Equal(again, statement) {
		t.Error("it is another one the second time", err)
	}
	if _, err := attest.Statement([]byte("{")); err == nil {
		t.Error("half a bundle has a statement")
	}
}

// An attestation is the runner's, about this bundle, or it is refused.
func TestAttestationForged(t *testing.T) {
	runner := testKey(t, 2)
	_, statement, envelope := attested(t, runner)
	pem := runner.PublicPEM()
	if err := attest.Check(envelope, statement, pem); err != nil {
		t.Fatal(err)
	}
	another, err := attest.Sign(t.Context(), statement, testKey(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(slices.Clone(statement), []byte("run_test"), []byte("run_best"), 1)
	resigned, err := attest.Sign(t.Context(), other, runner)
	if err != nil {
		t.Fatal(err)
	}
	payload := base64.StdEncoding.EncodeToString
	for name, row := range map[string]struct {
		envelope []byte
		is       error // nil: any
	}{
		"another key":       {another, attest.ErrSignature},
		"another statement": {resigned, attest.ErrStatement},
		"changed payload":   {bytes.Replace(envelope, []byte(payload(statement)), []byte(payload(other)), 1), attest.ErrSignature},
		"another type":      {bytes.Replace(envelope, []byte("vnd.in-toto"), []byte("vnd.in-tato"), 1), nil},
		"no signature":      {[]byte(`{"payload":"` + payload(statement) + `","payloadType":"` + attest.PayloadType + `","signatures":[]}`), attest.ErrSignature},
		"signed as bytes, not as what they are": {func() []byte {
			sig, err := runner.Sign(t.Context(), statement)
			if err != nil {
				t.Fatal(err)
			}
			return []byte(`{"payload":"` + payload(statement) + `","payloadType":"` + attest.PayloadType + `","signatures":[{"sig":"` + payload(sig) + `"}]}`)
		}(), attest.ErrSignature},
		"a payload twice": {append([]byte(`{"payload":"e30=",`), envelope[1:]...), nil},
		"nothing":         {nil, nil},
	} {
		if err := attest.Check(row.envelope, statement, pem); err == nil || row.is != nil && !errors.Is(err, row.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A log's entry holds the envelope as it is, and its hashes.
func TestLogEntry(t *testing.T) {
	runner := testKey(t, 2)
	_, statement, envelope := attested(t, runner)
	log, err := attest.Entry(envelope, runner.PublicPEM())
	if err != nil || log.EnvelopeHash != canonical.Sum(envelope) || log.PayloadHash != canonical.Sum(statement) {
		t.Fatal(log, err)
	}
	var e struct {
		Kind, APIVersion string
		Spec             struct {
			ProposedContent struct {
				Envelope  string
				Verifiers [][]byte
			}
		}
	}
	if err := json.Unmarshal(log.Entry, &e); err != nil {
		t.Fatal(err)
	}
	if c := e.Spec.ProposedContent; e.Kind != "dsse" || e.APIVersion != "0.0.1" || c.Envelope != string(envelope) || string(c.Verifiers[0]) != runner.PublicPEM() {
		t.Errorf("%s", log.Entry)
	}
	if _, err := attest.Entry([]byte("x"), ""); err == nil {
		t.Error("nonsense has an entry")
	}
}
