package validate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// combinations are sets of values that between them use every branch of the
// templates.
var combinations = map[string][]string{
	"defaults":  nil,
	"gateway":   {"--set", "mode=gateway"},
	"metrics":   {"--set", "metrics.enabled=true"},
	"gw-metric": {"--set", "mode=gateway,metrics.enabled=true"},
	"explicit":  {"--set", "capture.enabled=false"},
	"old":       {"--set", "mode=gateway", "--kube-version", "1.29.0"},
	"job":       {"-f", "testdata/job.yaml"},
	"no-agent":  {"--set", "agent.enabled=false,networkPolicy.enabled=false,serviceAccount.create=false,verify.enabled=false"},
	"everything": {
		"-f", "testdata/everything.yaml",
	},
}

func TestLint(t *testing.T) {
	for name, args := range combinations {
		if name == "old" {
			args = args[:2] // lint has its own flag
		}
		if _, err := tool(nil, "helm", append([]string{"lint", "--strict", "--namespace", "agents", chart}, args...)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConform(t *testing.T) {
	all := map[string][]byte{}
	for name, args := range combinations {
		all[name] = render(t, args...)
	}
	files, err := filepath.Glob(manifests + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests: ", err)
	}
	for _, f := range files {
		if all[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range all {
		if err := conform(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(decode(t, text)) == 0 {
			t.Errorf("%s renders nothing", name)
		}
	}
}

func conform(text []byte) error {
	out, err := tool(text, "kubeconform", "-strict", "-summary", "-schema-location", "schemas/{{.ResourceKind}}{{.KindSuffix}}.json")
	if err == nil && !bytes.Contains(out, []byte("Invalid: 0, Errors: 0, Skipped: 0")) {
		err = fmt.Errorf("kubeconform: %s", out)
	}
	return err
}

// A validator that accepts everything would be no proof.
func TestConformRefuses(t *testing.T) {
	good := string(render(t))
	for name, swap := range map[string][2]string{
		"unknown field": {"periodSeconds:", "periodSecond:"},
		"wrong type":    {"readOnly: true", "readOnly: [true]"},
		"unknown kind":  {"kind: NetworkPolicy", "kind: NetworkPolice"},
		"missing field": {"emptyDir:", "name: x\n          emptyDir:"},
	} {
		bad := strings.Replace(good, swap[0], swap[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing to replace", name)
		}
		if err := conform([]byte(bad)); err == nil {
			t.Errorf("%s: kubeconform accepts it", name)
		}
	}
}

// The plain manifests are what the chart renders; -update writes them.
func TestPlainManifests(t *testing.T) {
	for file, args := range map[string][]string{
		"egressd.yaml": nil,
		"gateway.yaml": {"--set", "mode=gateway"},
	} {
		const head = "# Rendered from deploy/helm/egressd by `go test . -update` in deploy/validate: change the chart, not this file.\n"
		want := append([]byte(head), render(t, append(args, "--skip-tests")...)...)
		// Without Helm nobody manages these.
		want = bytes.ReplaceAll(want, []byte("app.kubernetes.io/managed-by: Helm"), []byte("app.kubernetes.io/managed-by: kubectl"))
		path := filepath.Join(manifests, file)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what the chart renders: run `go test . -update` in deploy/validate", path)
		}
	}
}

// Values that would undo the enforcement are refused with a reason.
func TestRefusedValues(t *testing.T) {
	tests := []struct{ name, set, want string }{
		{"agent as egressd", "agent.runAsUser=65532", "runAsUser"},
		{"agent as root", "agent.runAsUser=0", "runAsUser"},
		{"unknown mode", "mode=sidecr", "mode"},
		{"unknown value", "agent.comand={a}", "comand"},
		{"gateway with an open network", "mode=gateway,networkPolicy.enabled=false", "network open"},
		{"neighbour as egressd", "agent.extraContainers[0].name=x,agent.extraContainers[0].securityContext.runAsUser=65532", "egressd's own"},
		{"pod-level privilege", "agent.initContainers[0].name=x,agent.initContainers[0].securityContext.privileged=true", "privileges"},
		{"capability", "agent.extraContainers[0].name=x,agent.extraContainers[0].securityContext.capabilities.add={SETUID}", "capabilities"},
		{"drain without unit", "egressd.drain=30", "drain"},
	}
	for _, tt := range tests {
		_, err := tool(nil, "helm", "template", "egressd", chart, "--set", tt.set)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// What the installer reads afterwards says how far the enforcement goes.
func TestNotes(t *testing.T) {
	for name, want := range map[string]string{
		"defaults": "pod-security.kubernetes.io/enforce=privileged",
		"explicit": "not enforcement",
		"gateway":  "NetworkPolicies are the wall",
	} {
		args := append([]string{"install", "egressd", chart, "--dry-run=client", "--namespace", "agents"}, combinations[name]...)
		out, err := tool(nil, "helm", args...)
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(out), want) {
			t.Errorf("%s: the notes do not say %q", name, want)
		}
	}
}
