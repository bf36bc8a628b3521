package validate

import (
	"bytes"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The chart's copies of the alerts and the dashboard are the ones that are tested;
// -update writes them.
func TestChartFiles(t *testing.T) {
	for file, from := range map[string]string{"rules.yaml": "../prometheus/egressd.rules.yaml", "dashboard.json": "../grafana/egressd.json"} {
		want, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := chart + "/files/" + file
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not %s: run `go test . -update` in deploy/validate", path, from)
		}
	}
}

// custom finds the document of this kind, which client-go does not know.
func custom(t *testing.T, text []byte, kind string) map[string]any {
	t.Helper()
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var got map[string]any
		if err := yaml.Unmarshal([]byte(doc), &got); err != nil {
			t.Fatal(err)
		}
		if got["kind"] == kind {
			return got["spec"].(map[string]any)
		}
	}
	t.Fatalf("no %s", kind)
	return nil
}

// What the operator is given selects the pods and their port, and the alerts and the
// dashboard arrive as they are, template marks and all.
func TestMonitoring(t *testing.T) {
	text := render(t, combinations["monitored"]...)
	objects := decode(t, text)
	agent := find(t, objects, func(d *appsv1.Deployment) bool { return d.Name == "egressd-agent" })
	monitor := custom(t, text, "PodMonitor")
	labels := map[string]string{}
	for k, v := range monitor["selector"].(map[string]any)["matchLabels"].(map[string]any) {
		labels[k] = v.(string)
	}
	if !selects(labels, agent.Spec.Template.Labels) {
		t.Errorf("the monitor selects %v, pods have %v", labels, agent.Spec.Template.Labels)
	}
	egressd := container(t, agent.Spec.Template.Spec, "egressd")
	if port := monitor["podMetricsEndpoints"].([]any)[0].(map[string]any)["port"]; len(egressd.Ports) != 1 || egressd.Ports[0].Name != port {
		t.Errorf("the monitor asks port %v, egressd has %v", port, egressd.Ports)
	}
	if len(agent.Spec.Template.Annotations) != 0 {
		t.Errorf("read twice: %v", agent.Spec.Template.Annotations)
	}
	rules, err := os.ReadFile("../prometheus/egressd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(rules, &want); err != nil {
		t.Fatal(err)
	}
	have, err1 := yaml.Marshal(custom(t, text, "PrometheusRule"))
	need, err2 := yaml.Marshal(want)
	if err1 != nil || err2 != nil || !bytes.Equal(have, need) {
		t.Errorf("the alerts are not those that are tested: %v, %v", err1, err2)
	}
	board, err := os.ReadFile("../grafana/egressd.json")
	if err != nil {
		t.Fatal(err)
	}
	shown := find(t, objects, func(c *corev1.ConfigMap) bool { return c.Name == "egressd-dashboard" })
	if shown.Data["egressd.json"] != string(board) || shown.Labels["grafana_dashboard"] != "1" {
		t.Error("the dashboard is another one, or Grafana does not find it")
	}
}

// With metrics the kubelet asks the port; without, egressd has none.
func TestProbes(t *testing.T) {
	for name, asked := range map[string]bool{"defaults": false, "metrics": true, "gateway": false, "gw-metric": true} {
		for pod, spec := range podsOf(decode(t, render(t, combinations[name]...))) {
			if (pod == "egressd") != strings.HasPrefix(name, "g") {
				continue // agents of a gateway, or no pod of the sidecar
			}
			c := container(t, spec.Spec, "egressd")
			for what, p := range map[string]*corev1.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
				if asked && (p.HTTPGet == nil || p.HTTPGet.Path != what || p.HTTPGet.Port.StrVal != "metrics" || p.Exec != nil) || !asked && p.Exec == nil {
					t.Errorf("%s, %s: %s: %+v", name, pod, what, p)
				}
			}
		}
	}
}
