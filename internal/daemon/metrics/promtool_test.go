//go:build system

package metrics

import (
	"os/exec"
	"testing"
)

// The alerts fire on their fault and on nothing else: Prometheus' own tool says so.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here: it is in Debian's package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "egressd.rules.yaml"}, {"test", "rules", "egressd.test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "../../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}
