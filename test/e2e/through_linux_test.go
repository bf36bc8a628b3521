package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestThroughEgressd runs the tables again (throughTables), each run by a daemon:
// its policy is the run's own, as a ceiling, so nothing may come out differently.
func TestThroughEgressd(t *testing.T) {
	needWorld(t)
	if env.through {
		return // this is it
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	through := filepath.Join(env.base, "through")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w -X main.launch="+env.launch+" -X main.egressd="+env.daemon, "-o", through, "egressd/test/e2e/through")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	again := exec.CommandContext(ctx, "/proc/self/exe", "-launch="+through, "-probe="+env.probe, "-egressd="+env.daemon, "-through", "-test.run="+throughTables, "-test.v")
	out, err := again.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestVerdicts")) {
		t.Fatalf("%v\n%s", err, out)
	}
}
