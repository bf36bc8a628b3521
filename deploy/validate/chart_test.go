package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
)

// combinations are sets of values that between them use every branch of the
// templates.
var combinations = map[string][]string{
	"defaults":  nil,
	"gateway":   {"--set", "mode=gateway"},
	"metrics":   {"--set", "metrics.enabled=true"},
	"gw-metric": {"--set", "mode=gateway,metrics.enabled=true"},
	"gw-auto":   {"--set", "mode=gateway,gateway.autoscaling.enabled=true,gateway.priorityClassName=high"},
	"explicit":  {"--set", "capture.enabled=false"},
	"monitored": {"--set", "metrics.enabled=true,metrics.podMonitor.enabled=true,metrics.podMonitor.interval=15s,metrics.prometheusRule.enabled=true,metrics.prometheusRule.labels.release=prom,metrics.dashboard.enabled=true"},
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
		{"autoscaling backwards", "mode=gateway,gateway.autoscaling.enabled=true,gateway.autoscaling.maxReplicas=1", "maxReplicas (1)"},
		{"autoscaling without a request", "mode=gateway,gateway.autoscaling.enabled=true,egressd.resources.requests=null", "is not set"},
		{"unknown mode", "mode=sidecr", "mode"},
		{"alerts over nothing", "metrics.prometheusRule.enabled=true", "without metrics.enabled"},
		{"unknown value", "agent.comand={a}", "comand"},
		{"gateway with an open network", "mode=gateway,networkPolicy.enabled=false", "network open"},
		{"neighbour as egressd", "agent.extraContainers[0].name=x,agent.extraContainers[0].securityContext.runAsUser=65532", "egressd's own"},
		{"pod-level privilege", "agent.initContainers[0].name=x,agent.initContainers[0].securityContext.privileged=true", "privileges"},
		{"capability", "agent.extraContainers[0].name=x,agent.extraContainers[0].securityContext.capabilities.add={SETUID}", "capabilities"},
		{"drain without unit", "egressd.drain=30", "drain"},
		{"drain as long as the grace period", "egressd.drain=45s", "before the pod's grace period"},
		{"drain in minutes", "egressd.drain=1m", "before the pod's grace period"},
		{"drain in milliseconds", "egressd.drain=45000ms", "before the pod's grace period"},
		{"drain and the gateway's preStop", "mode=gateway,egressd.drain=40s", "40 s of terminationGracePeriodSeconds"},
		{"unknown key of the policy", "policy.allows={api.example.com}", "allows"},
		{"list file without a ConfigMap", "policy.allow_file=names.txt", "allow_file"},
		{"limit that is none", "policy.limits.connection=5", "connection"},
		{"public suffix", "policy.allow={*.com}", "public suffix"},
		{"public suffix with a port", "policy.deny={.uk:443}", "public suffix"},
		{"every host", "policy.allow={*}", "name the hosts"},
		{"rule with a scheme", "policy.allow={https://api.example.com/}", "no scheme"},
		{"half a label", "policy.allow={api*.example.com}", "whole labels"},
		{"no seccomp", "seccompProfile.type=Unconfined", "seccompProfile"},
		{"no profile", "seccompProfile.type=Localhost", "localhostProfile"},
		{"agent with egressd's policy", "agent.volumeMounts[0].name=egressd-policy,agent.volumeMounts[0].mountPath=/x", "which is egressd's"},
		{"agent with egressd's secret", "egressd.volumes[0].name=s,egressd.volumes[0].secret.secretName=s,agent.volumeMounts[0].name=s,agent.volumeMounts[0].readOnly=true", "only an emptyDir"},
		{"agent writes what egressd writes", "egressd.volumes[0].name=ca,egressd.volumes[0].emptyDir.medium=Memory,agent.initContainers[0].name=x,agent.initContainers[0].volumeMounts[0].name=ca", "readOnly"},
		{"volume in the place of the policy", "egressd.volumes[0].name=egressd-policy", "is taken"},
	}
	for _, tt := range tests {
		_, err := tool(nil, "helm", "template", "egressd", chart, "--set", tt.set)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// What egressd accepts the chart accepts: of its checks none is stricter.
func TestAcceptedRules(t *testing.T) {
	for _, rule := range []string{
		"api.example.com", "*.example.com", ".example.com", "*.internal", "github.com:22", "github.com:*", "203.0.113.0/24:5432", "[2001:db8::1]:443",
		"GET https://api.example.com/v1/**", "GET https://*.example.com/a*b",
	} {
		for _, key := range []string{"allow", "deny"} {
			values := fmt.Sprintf("policy: {%s: [%q]}", key, rule)
			if _, err := tool([]byte(values), "helm", "template", "egressd", chart, "-f", "-"); err != nil {
				t.Errorf("%s: %v", values, err)
			}
		}
	}
}

// A node drain takes one pod of the gateway at a time, and is never stopped by
// a gateway of one pod; what the autoscaler counts is not fixed beside it.
func TestGatewayStays(t *testing.T) {
	for set, want := range map[string]struct{ budgets, scalers, replicas int }{
		"mode=gateway":                                  {1, 0, 2},
		"mode=gateway,gateway.replicas=1":               {0, 0, 1},
		"mode=gateway,gateway.autoscaling.enabled=true": {1, 1, 0},
		"mode=sidecar,gateway.autoscaling.enabled=true": {0, 0, 0},
		"mode=gateway,gateway.autoscaling.enabled=true,gateway.autoscaling.minReplicas=1": {0, 1, 0},
	} {
		budgets, scalers, replicas := 0, 0, 0
		for _, o := range decode(t, render(t, "--set", set)) {
			switch o := o.(type) {
			case *policyv1.PodDisruptionBudget:
				budgets++
				if o.Spec.MaxUnavailable.IntValue() != 1 || o.Spec.Selector.MatchLabels["app.kubernetes.io/component"] != "gateway" {
					t.Errorf("%s: %+v", set, o.Spec)
				}
			case *autoscalingv2.HorizontalPodAutoscaler:
				scalers++
			case *appsv1.Deployment:
				if o.Name != "egressd" {
					continue
				}
				if len(o.Spec.Template.Spec.TopologySpreadConstraints) != 2 {
					t.Errorf("%s: the gateway's pods are not spread", set)
				}
				if o.Spec.Replicas != nil {
					replicas = int(*o.Spec.Replicas)
				}
			}
		}
		if budgets != want.budgets || scalers != want.scalers || replicas != want.replicas {
			t.Errorf("%s: %d budgets, %d autoscalers, %d replicas; want %+v", set, budgets, scalers, replicas, want)
		}
	}
}

// A namespace may be a number or look like a boolean.
func TestNamespaceIsText(t *testing.T) {
	for _, ns := range []string{"1234", "n", "true"} {
		for _, mode := range []string{"sidecar", "gateway"} {
			out, err := tool(nil, "helm", "template", "egressd", chart, "--namespace", ns, "--set", "mode="+mode)
			if err != nil {
				t.Fatal(err)
			}
			if err := conform(out); err != nil {
				t.Errorf("%s in namespace %s: %v", mode, ns, err)
			}
		}
	}
}

// The policy in the values has the schema of the policy file, without the list
// files, which a ConfigMap made from values cannot hold.
func TestPolicySchema(t *testing.T) {
	var file, values map[string]any
	for path, v := range map[string]*map[string]any{"../../docs/policy.schema.json": &file, chart + "/values.schema.json": &values} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatal(path, err)
		}
	}
	have := values["properties"].(map[string]any)["policy"].(map[string]any)
	have["$defs"] = values["$defs"]
	for _, text := range []string{"$schema", "$id", "title", "description"} {
		delete(file, text)
		delete(have, text)
	}
	delete(file["$defs"].(map[string]any), "denyList")
	for _, key := range []string{"allow_file", "deny_file"} {
		delete(file["properties"].(map[string]any), key)
	}
	if !reflect.DeepEqual(file, have) {
		t.Error("properties.policy and $defs of values.schema.json are not those of docs/policy.schema.json: copy them")
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
