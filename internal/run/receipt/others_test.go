//go:build system

package receipt

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"egressd/internal/run/receipt/attest"
	"egressd/internal/run/receipt/canonical"
)

// The libraries of those who defined the formats read an attestation: DSSE, in-toto,
// SLSA, and the type that a Rekor log runs on what it is sent.
func TestOthersRead(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "readers")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = filepath.Join("testdata", "readers"), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runner := testKey(t, 2)
	_, statement, envelope := attested(t, runner)
	log, err := attest.Entry(envelope, runner.PublicPEM())
	if err != nil {
		t.Fatal(err)
	}
	read := func(envelope, entry string) string {
		t.Helper()
		var names []string
		for name, text := range map[string]string{"1.json": envelope, "2.json": entry, "3.pem": runner.PublicPEM()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"1.json", "2.json", "3.pem"} {
			names = append(names, filepath.Join(dir, name))
		}
		out, _ := exec.CommandContext(t.Context(), program, names...).CombinedOutput() // what it prints tells
		return string(out)
	}
	got := read(string(envelope), string(log.Entry))
	for _, want := range []string{attest.PredicateType + " run_test\n", log.EnvelopeHash, log.PayloadHash, canonical.Sum(statement)} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in what they read: %s", want, got)
		}
	}
	forged, err := attest.Sign(t.Context(), statement, testKey(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(string(forged), string(log.Entry)); !strings.Contains(got, "wrong: DSSE") {
		t.Errorf("of another key they say %s", got)
	}
	if got := read(string(envelope), strings.Replace(string(log.Entry), string(envelope[20:40]), strings.Repeat("A", 20), 1)); !strings.Contains(got, "wrong: Rekor") {
		t.Errorf("of a changed entry they say %s", got)
	}
}
