package validate

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/cel/environment"
)

// admission is our ValidatingAdmissionPolicy, evaluated with Kubernetes' own
// CEL environment.
type admission struct {
	env      *cel.Env
	policy   *admissionv1.ValidatingAdmissionPolicy
	programs map[string]cel.Program // by expression
}

func newAdmission(t *testing.T) *admission {
	t.Helper()
	text, err := os.ReadFile(manifests + "/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(cel.Variable("object", cel.DynType), cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	return &admission{env: env, programs: map[string]cel.Program{}, policy: find[*admissionv1.ValidatingAdmissionPolicy](t, decode(t, text), nil)}
}

func (a *admission) eval(expression string, in map[string]any) (any, error) {
	program := a.programs[expression]
	if program == nil {
		ast, issues := a.env.Compile(expression)
		if err := issues.Err(); err != nil {
			return nil, err
		}
		var err error
		if program, err = a.env.Program(ast); err != nil {
			return nil, err
		}
		a.programs[expression] = program
	}
	out, _, err := program.Eval(in)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// refusals are the messages of the validations that a pod fails; with
// failurePolicy Fail an error is one.
func (a *admission) refusals(t *testing.T, spec corev1.PodSpec) (messages []string) {
	t.Helper()
	text, err := json.Marshal(corev1.Pod{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{}
	in := map[string]any{"object": integers(object), "variables": variables}
	for _, v := range a.policy.Spec.Variables {
		if variables[v.Name], err = a.eval(v.Expression, in); err != nil {
			t.Fatalf("variable %s: %v", v.Name, err)
		}
	}
	for _, v := range a.policy.Spec.Validations {
		out, err := a.eval(v.Expression, in)
		if err != nil {
			messages = append(messages, err.Error())
		} else if fmt.Sprint(out) != "true" {
			messages = append(messages, v.Message)
		}
	}
	return messages
}

// integers turns JSON's numbers into those of Kubernetes.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = integers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = integers(x)
		}
	case float64:
		return int64(v)
	}
	return v
}

// The chart's pods pass.
func TestAdmissionAllows(t *testing.T) {
	a := newAdmission(t)
	for _, name := range []string{"defaults", "metrics", "job"} {
		for pod, template := range podsOf(decode(t, render(t, combinations[name]...))) {
			if refusals := a.refusals(t, template.Spec); len(refusals) > 0 {
				t.Errorf("%s/%s: %v", name, pod, refusals)
			}
		}
	}
}

// What would get out, or look into egressd, does not.
func TestAdmissionDenies(t *testing.T) {
	a := newAdmission(t)
	yes, root, own := true, int64(0), int64(egressUID)
	always := corev1.ContainerRestartPolicyAlways
	agent := func(s *corev1.PodSpec) *corev1.Container { return &s.Containers[0] }
	for name, change := range map[string]func(*corev1.PodSpec){
		"no capture":               func(s *corev1.PodSpec) { s.InitContainers = s.InitContainers[1:] },
		"no egressd":               func(s *corev1.PodSpec) { s.InitContainers = s.InitContainers[:1] },
		"capture after another":    func(s *corev1.PodSpec) { s.InitContainers = append(s.InitContainers[1:2:2], s.InitContainers[0]) },
		"capture as a sidecar":     func(s *corev1.PodSpec) { s.InitContainers[0].RestartPolicy = &always },
		"capture of another image": func(s *corev1.PodSpec) { s.InitContainers[0].Image = "evil:1" },
		"another command":          func(s *corev1.PodSpec) { s.InitContainers[0].Command = []string{"/launch"} },
		"another subcommand":       func(s *corev1.PodSpec) { s.InitContainers[0].Args = []string{"version"} },
		"capture --remove":         func(s *corev1.PodSpec) { s.InitContainers[0].Args = []string{"capture", "--remove"} },
		"capture of another namespace": func(s *corev1.PodSpec) {
			s.InitContainers[0].Args = []string{"capture", "--netns=/proc/1/ns/net"}
		},
		"more capabilities": func(s *corev1.PodSpec) {
			s.InitContainers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "SYS_ADMIN"}
		},
		"two captures": func(s *corev1.PodSpec) { s.InitContainers = append(s.InitContainers, s.InitContainers[0]) },
		"an agent called egressd": func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "egressd", Image: "evil", SecurityContext: &corev1.SecurityContext{RunAsUser: &own}})
		},
		"agent as egressd": func(s *corev1.PodSpec) { agent(s).SecurityContext.RunAsUser = &own },
		"agent as root":    func(s *corev1.PodSpec) { agent(s).SecurityContext.RunAsUser = &root },
		"agent as whoever": func(s *corev1.PodSpec) {
			agent(s).SecurityContext.RunAsUser, s.SecurityContext.RunAsUser = nil, nil
		},
		"pod as egressd": func(s *corev1.PodSpec) {
			agent(s).SecurityContext.RunAsUser, s.SecurityContext.RunAsUser = nil, &own
		},
		"privileged agent":  func(s *corev1.PodSpec) { agent(s).SecurityContext.Privileged = &yes },
		"agent may gain":    func(s *corev1.PodSpec) { agent(s).SecurityContext.AllowPrivilegeEscalation = &yes },
		"agent without any": func(s *corev1.PodSpec) { agent(s).SecurityContext = nil },
		"agent with SETUID": func(s *corev1.PodSpec) {
			agent(s).SecurityContext.Capabilities.Add = []corev1.Capability{"SETUID"}
		},
		"agent keeps capabilities": func(s *corev1.PodSpec) { agent(s).SecurityContext.Capabilities.Drop = nil },
		"agent without seccomp": func(s *corev1.PodSpec) {
			agent(s).SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		},
		"debugging container": func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Image: "busybox", SecurityContext: &corev1.SecurityContext{RunAsUser: &own},
			}}}
		},
		"host network":     func(s *corev1.PodSpec) { s.HostNetwork = true },
		"host processes":   func(s *corev1.PodSpec) { s.HostPID = true },
		"shared processes": func(s *corev1.PodSpec) { s.ShareProcessNamespace = &yes },
		"host directory": func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		},
		"egressd's sockets": func(s *corev1.PodSpec) {
			agent(s).VolumeMounts = []corev1.VolumeMount{{Name: "egressd-run", MountPath: "/x"}}
		},
	} {
		spec := podsOf(decode(t, render(t)))["egressd-agent"].Spec // decoded anew, so it may be changed
		if len(a.refusals(t, spec)) > 0 {
			t.Fatal("the chart's own pod is refused")
		}
		change(&spec)
		if len(a.refusals(t, spec)) == 0 {
			t.Errorf("%s: admitted", name)
		}
	}
}
