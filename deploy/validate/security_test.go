package validate

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// podsOf lists every pod that the objects would make, by name.
func podsOf(objects []runtime.Object) map[string]corev1.PodTemplateSpec {
	pods := map[string]corev1.PodTemplateSpec{}
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			pods[o.Name] = o.Spec.Template
		case *batchv1.Job:
			pods[o.Name] = o.Spec.Template
		case *corev1.Pod:
			pods[o.Name] = corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		}
	}
	return pods
}

// violations asks Pod Security admission's own code.
func violations(t *testing.T, level api.Level, meta metav1.ObjectMeta, spec corev1.PodSpec) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &meta, &spec) {
		if !r.Allowed {
			out = append(out, r.ForbiddenReason+": "+r.ForbiddenDetail)
		}
	}
	return out
}

// The capture container is the one and only thing that is not "restricted".
func TestPodSecurity(t *testing.T) {
	for name, args := range combinations {
		for pod, template := range podsOf(decode(t, render(t, args...))) {
			spec := template.Spec
			captured := slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == "capture" })
			whole := violations(t, api.LevelRestricted, template.ObjectMeta, spec)
			if captured != (len(whole) > 0) {
				t.Errorf("%s/%s: capture %v, but restricted finds %v", name, pod, captured, whole)
			}
			if captured && len(violations(t, api.LevelBaseline, template.ObjectMeta, spec)) == 0 {
				t.Errorf("%s/%s: baseline accepts NET_ADMIN: the documentation says it does not", name, pod)
			}
			spec.InitContainers = slices.DeleteFunc(slices.Clone(spec.InitContainers), func(c corev1.Container) bool { return c.Name == "capture" })
			for _, v := range violations(t, api.LevelRestricted, template.ObjectMeta, spec) {
				t.Errorf("%s/%s without the capture container: %s", name, pod, v)
			}
		}
	}
}

// The rules, then egressd and its readiness, then the agent; egressd ends last.
func TestOrder(t *testing.T) {
	for _, name := range []string{"defaults", "metrics", "job", "everything"} {
		for pod, template := range podsOf(decode(t, render(t, combinations[name]...))) {
			spec := template.Spec
			if len(spec.InitContainers) < 2 {
				t.Fatalf("%s/%s: %d init containers", name, pod, len(spec.InitContainers))
			}
			capture, egressd := spec.InitContainers[0], spec.InitContainers[1]
			if capture.Name != "capture" || capture.RestartPolicy != nil {
				t.Errorf("%s/%s: first comes %s, not a capture that runs to its end", name, pod, capture.Name)
			}
			if egressd.Name != "egressd" || egressd.RestartPolicy == nil || *egressd.RestartPolicy != corev1.ContainerRestartPolicyAlways {
				t.Errorf("%s/%s: second comes %s, not egressd as a native sidecar", name, pod, egressd.Name)
			}
			if egressd.StartupProbe == nil || egressd.LivenessProbe == nil || egressd.ReadinessProbe == nil {
				t.Errorf("%s/%s: a probe is missing", name, pod)
			}
			if spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace || spec.HostNetwork || spec.HostPID || spec.HostIPC {
				t.Errorf("%s/%s shares a namespace", name, pod)
			}
		}
	}
}

// Who may do what in a pod.
func TestPrivileges(t *testing.T) {
	for name, args := range combinations {
		for pod, template := range podsOf(decode(t, render(t, args...))) {
			spec := template.Spec
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s/%s has a service account token", name, pod)
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				checkContainer(t, name+"/"+pod, spec, c)
			}
		}
	}
}

func checkContainer(t *testing.T, at string, spec corev1.PodSpec, c corev1.Container) {
	t.Helper()
	uid := int64(-1)
	if spec.SecurityContext.RunAsUser != nil {
		uid = *spec.SecurityContext.RunAsUser
	}
	var added []corev1.Capability
	if sc := c.SecurityContext; sc != nil {
		if sc.RunAsUser != nil {
			uid = *sc.RunAsUser
		}
		if sc.Capabilities != nil {
			added = sc.Capabilities.Add
		}
	}
	mounts := map[string]bool{} // name: read-only
	for _, m := range c.VolumeMounts {
		mounts[m.Name] = m.ReadOnly
	}
	_, policyMounted := mounts["egressd-policy"]
	_, runMounted := mounts["egressd-run"]
	switch c.Name {
	case "capture":
		if uid != 0 || !slices.Equal(added, []corev1.Capability{"NET_ADMIN"}) {
			t.Errorf("%s: capture is uid %d with %v", at, uid, added)
		}
	case "egressd":
		if uid != egressUID || !policyMounted || !mounts["egressd-policy"] || !runMounted || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: egressd is uid %d with mounts %v", at, uid, mounts)
		}
	default:
		if uid <= 0 || uid == egressUID {
			t.Errorf("%s: %s is uid %d", at, c.Name, uid)
		}
		if policyMounted || runMounted || len(added) > 0 {
			t.Errorf("%s: %s has capabilities %v and mounts %v", at, c.Name, added, mounts)
		}
	}
	if c.Name == "egressd" || c.Name == "capture" || c.Name == "verify" {
		if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: %s has no bound on its memory", at, c.Name)
		}
	}
}

// In mode gateway the agent reaches the gateway's proxy port and nothing else.
func TestGatewayWall(t *testing.T) {
	objects := decode(t, render(t, combinations["gateway"]...))
	wall := find(t, objects, func(p *networkingv1.NetworkPolicy) bool { return p.Name == "egressd-agent" })
	if len(wall.Spec.Egress) != 1 || len(wall.Spec.Egress[0].To) != 1 || len(wall.Spec.Egress[0].Ports) != 1 {
		t.Fatalf("more than one way out: %+v", wall.Spec.Egress)
	}
	to, port := wall.Spec.Egress[0].To[0], wall.Spec.Egress[0].Ports[0]
	if to.IPBlock != nil || to.NamespaceSelector != nil || port.Port.IntValue() != 3128 || *port.Protocol != corev1.ProtocolTCP {
		t.Errorf("the agent may reach %+v at %+v", to, port)
	}
	gateway := find(t, objects, func(d *appsv1.Deployment) bool { return d.Name == "egressd" })
	agent := find(t, objects, func(d *appsv1.Deployment) bool { return d.Name == "egressd-agent" })
	for what, pair := range map[string][2]map[string]string{
		"the wall stands before the agent":  {wall.Spec.PodSelector.MatchLabels, agent.Spec.Template.Labels},
		"the way out leads to the gateway":  {to.PodSelector.MatchLabels, gateway.Spec.Template.Labels},
		"the service leads to the gateway":  {find[*corev1.Service](t, objects, nil).Spec.Selector, gateway.Spec.Template.Labels},
		"the deployment selects its agents": {agent.Spec.Selector.MatchLabels, agent.Spec.Template.Labels},
	} {
		if !selects(pair[0], pair[1]) {
			t.Errorf("not so: %s (%v, %v)", what, pair[0], pair[1])
		}
	}
	if selects(wall.Spec.PodSelector.MatchLabels, gateway.Spec.Template.Labels) {
		t.Error("the agents' wall also stands before the gateway")
	}
	if selects(to.PodSelector.MatchLabels, agent.Spec.Template.Labels) {
		t.Error("an agent may reach other agents")
	}
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// The second wall of the sidecar knows addresses: metadata and private ranges
// are outside it.
func TestSidecarWall(t *testing.T) {
	wall := find[*networkingv1.NetworkPolicy](t, decode(t, render(t)), nil)
	if !slices.Contains(wall.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) || len(wall.Spec.Ingress) != 0 {
		t.Errorf("somebody may connect to the agent: %+v", wall.Spec.Ingress)
	}
	for _, rule := range wall.Spec.Egress {
		for _, to := range rule.To {
			if to.IPBlock == nil {
				continue
			}
			want := []string{"169.254.0.0/16", "10.0.0.0/8"}
			if to.IPBlock.CIDR == "::/0" {
				want = []string{"fc00::/7", "fe80::/10"}
			}
			for _, w := range want {
				if !slices.Contains(to.IPBlock.Except, w) {
					t.Errorf("%s is not left out of %s", w, to.IPBlock.CIDR)
				}
			}
		}
	}
}
