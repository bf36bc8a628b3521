//go:build system

package otlp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The collector's own library reads what is sent, with the kinds that were meant.
func TestCollectorReads(t *testing.T) {
	program := filepath.Join(t.TempDir(), "reader")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = filepath.Join("testdata", "reader"), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := encode([][]byte{[]byte(connected), []byte("no JSON")}, "1", time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	read := exec.CommandContext(t.Context(), program)
	read.Stdin = bytes.NewReader(text)
	out, err := read.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"map[host.name:node k8s.pod.name:web-1 service.name:egressd]", "egressd 2026-01-02T03:04:05.680123Z Warn network.connected map[",
		"server.port:443", "egressd.audit:true", "egressd.files:[a b]", "log.record.uid:k4vq-3",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
