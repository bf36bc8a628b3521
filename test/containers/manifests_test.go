//go:build system

package containers

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestManifests runs the tests of deploy/validate: Helm's lint and templates,
// kubeconform, strict decoding, and Pod Security's own rules. They are a module
// of their own, so that Kubernetes' and Helm's code stay out of egressd's.
func TestManifests(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./...")
	cmd.Dir = "../../deploy/validate"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly "+os.Getenv("GOFLAGS"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	needModules(t, string(out))
	t.Errorf("%v\n%s", err, out)
}

// needModules skips the test when what a command wrote says that Go modules
// cannot be downloaded here.
func needModules(t *testing.T, wrote string) {
	t.Helper()
	for _, sign := range []string{"dial tcp", "no such host", "module lookup disabled"} {
		if strings.Contains(wrote, sign) {
			t.Skipf("the modules of Helm and kubeconform cannot be had here: %s", wrote)
		}
	}
}
