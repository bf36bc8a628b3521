package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// doubles stand for programs that the workflow runs: each notes its arguments, and go makes a release of one file, whose content
// differs the second time when UNEQUAL is set.
const doubles = `#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
[ "$(basename "$0")" = go ] || exit 0
while [ "$1" != --out ]; do shift; done
mkdir "$2" && echo "x${GOCACHE:+$UNEQUAL}" >"$2/SHA256SUMS" && echo archive >"$2/egressd.tar.gz"
`

// TestWorkflow carries out the steps of the release workflow: it publishes what was built and compared. The attack is a
// second build that differs: nothing is signed or published then.
func TestWorkflow(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here")
	}
	data, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Name, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(data, &w); err != nil {
		t.Fatal(err)
	}
	job := w.Jobs["release"]
	if w.Permissions == nil || len(w.Permissions) != 0 || len(w.Jobs) != 1 || len(job.Permissions) != 3 {
		t.Errorf("permissions: %v, of the job %v", w.Permissions, job.Permissions)
	}
	for _, unequal := range []string{"", "y"} {
		dir := t.TempDir()
		log := filepath.Join(dir, "log")
		for _, name := range []string{"go", "cosign", "gh"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(doubles), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		failed := false
		for _, step := range job.Steps {
			if step.Run == "" || failed {
				continue
			}
			if strings.Contains(step.Run, "${{") {
				t.Errorf("%s: what GitHub puts in would be read as code", step.Name)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "RUNNER_TEMP=" + dir, "GITHUB_REF_NAME=v1.2.3", "LOG=" + log, "UNEQUAL=" + unequal}
			out, err := cmd.CombinedOutput()
			if failed = err != nil; failed && unequal == "" {
				t.Errorf("%s: %v: %s", step.Name, err, out)
			}
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		published := strings.Contains(string(text), "gh release create v1.2.3 --verify-tag --generate-notes "+dir+"/dist/SHA256SUMS "+dir+"/dist/egressd.tar.gz\n")
		if published != (unequal == "") || strings.Contains(string(text), "cosign sign-blob") != published {
			t.Errorf("unequal %q: published %v:\n%s", unequal, published, text)
		}
	}
}
