package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAction runs the GitHub Action's own first step with a release: it installs what was verified and puts it on PATH. The attacks
// are an archive that is not the release's, and inputs that would be code if the step did not read them as data.
func TestAction(t *testing.T) {
	skipElsewhere(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here")
	}
	data, err := os.ReadFile("../github-action/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Runs struct {
			Steps []struct {
				Name, Run string
				Env       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(data, &action); err != nil {
		t.Fatal(err)
	}
	step := action.Runs.Steps[0]
	if step.Env["IN_VERSION"] != "${{ inputs.version }}" || strings.Contains(step.Run, "${{") {
		t.Fatalf("the first step is %+v", step)
	}
	here, err := filepath.Abs("../github-action")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		version, from string
		tamper, ok    bool
	}{
		"good":             {version: "v1.2.3", ok: true},
		"another archive":  {version: "v1.2.3", tamper: true},
		"code for version": {version: "v1.2.3; touch {}"},
		"code for place":   {version: "v1.2.3", from: "$(touch {})"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, archive := published(t)
			if c.tamper {
				put(t, archive, []byte("no archive"))
			}
			temp := t.TempDir()
			planted := filepath.Join(temp, "planted")
			from := strings.ReplaceAll(c.from, "{}", planted)
			if from == "" {
				from = dir
			}
			paths := filepath.Join(temp, "paths")
			cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "RUNNER_TEMP=" + temp, "GITHUB_ACTION_PATH=" + here, "GITHUB_PATH=" + paths,
				"IN_VERSION=" + strings.ReplaceAll(c.version, "{}", planted), "IN_FROM=" + from,
			}
			out, err := cmd.CombinedOutput()
			_, installed := os.Stat(temp + "/egressd-bin/launch")
			path, _ := os.ReadFile(paths) // none when the step failed
			if (err == nil) != c.ok || (installed == nil) != c.ok || (string(path) == temp+"/egressd-bin\n") != c.ok {
				t.Errorf("%v, PATH %q: %s", err, path, out)
			}
			if _, err := os.Stat(planted); err == nil {
				t.Error("an input was run")
			}
		})
	}
}
