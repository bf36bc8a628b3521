package validate

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// edit changes a pod that egressd holds.
type edit = func(*corev1.PodSpec)

func capture(s *corev1.PodSpec) *corev1.Container { return &s.InitContainers[0] }
func sidecar(s *corev1.PodSpec) *corev1.Container { return &s.InitContainers[1] }
func program(s *corev1.PodSpec) *corev1.Container { return &s.Containers[0] }

func args(of func(*corev1.PodSpec) *corev1.Container, args ...string) edit {
	return func(s *corev1.PodSpec) { of(s).Args = args }
}

func moreArgs(of func(*corev1.PodSpec) *corev1.Container, more ...string) edit {
	return func(s *corev1.PodSpec) { of(s).Args = append(slices.Clone(of(s).Args), more...) }
}

func env(of func(*corev1.PodSpec) *corev1.Container, name, value string) edit {
	return func(s *corev1.PodSpec) {
		c := of(s)
		c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return e.Name == name })
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func runs(command ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
}

func hook(command ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}
}

func elsewhere(host string) *corev1.HTTPGetAction {
	return &corev1.HTTPGetAction{Host: host, Path: "/", Port: intstr.FromInt32(80)}
}

// asks is a probe of a page.
func asks(get corev1.HTTPGetAction) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &get}}
}

func uid(of func(*corev1.PodSpec) *corev1.Container, n int64) edit {
	return func(s *corev1.PodSpec) { of(s).SecurityContext.RunAsUser = &n }
}

func unconfined(of func(*corev1.PodSpec) *corev1.Container) edit {
	return func(s *corev1.PodSpec) {
		of(s).SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}
}

func writable(of func(*corev1.PodSpec) *corev1.Container) edit {
	return func(s *corev1.PodSpec) { no := false; of(s).SecurityContext.ReadOnlyRootFilesystem = &no }
}

func mount(of func(*corev1.PodSpec) *corev1.Container, name, path string) edit {
	return func(s *corev1.PodSpec) {
		of(s).VolumeMounts = append(slices.Clone(of(s).VolumeMounts), corev1.VolumeMount{Name: name, MountPath: path})
	}
}

func volume(s *corev1.PodSpec, name string) *corev1.VolumeSource {
	i := slices.IndexFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	return &s.Volumes[i].VolumeSource
}

func debugger(change func(*corev1.EphemeralContainer)) edit {
	return func(s *corev1.PodSpec) {
		e := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "busybox", SecurityContext: s.Containers[0].SecurityContext.DeepCopy(),
		}}
		change(&e)
		s.EphemeralContainers = append(s.EphemeralContainers, e)
	}
}

// held lists what a team may do to its pods: egressd holds them all the same.
func held() map[string]edit {
	return map[string]edit{
		"nothing":             func(*corev1.PodSpec) {},
		"another program":     args(program, "python3", "-c", "print(1)"),
		"a variable":          env(program, "EGRESSD_AUDIT", "true"),
		"another agent image": func(s *corev1.PodSpec) { program(s).Image = "evil:1" },
		"another user":        uid(program, 12345),
		"a group":             func(s *corev1.PodSpec) { n := int64(65532); s.SecurityContext.SupplementalGroups = []int64{n} },
		"a probe":             func(s *corev1.PodSpec) { program(s).LivenessProbe = &corev1.Probe{ProbeHandler: runs("/launch")} },
		"a probe of a port": func(s *corev1.PodSpec) {
			program(s).ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: elsewhere("")}}
		},
		"a hook": func(s *corev1.PodSpec) {
			program(s).Lifecycle = &corev1.Lifecycle{PostStart: hook("curl", "https://x")}
		},
		"a debugger": debugger(func(*corev1.EphemeralContainer) {}),
		"a volume":   func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: "work"}) },
		"more memory": func(s *corev1.PodSpec) {
			program(s).Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
		},
		"host aliases": func(s *corev1.PodSpec) {
			s.HostAliases = []corev1.HostAlias{{IP: "8.8.8.8", Hostnames: []string{"api.example.com"}}}
		},
		"dns options": func(s *corev1.PodSpec) { s.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"example.com"}} },
		"a container": func(s *corev1.PodSpec) {
			c := *program(s).DeepCopy()
			c.Name = "second"
			s.Containers = append(s.Containers, c)
		},
		"a setup container": func(s *corev1.PodSpec) {
			c := *program(s).DeepCopy()
			c.Name = "setup"
			s.InitContainers = append(s.InitContainers, c)
		},
		"debug log":     func(s *corev1.PodSpec) { replace(sidecar(s).Args, "--log-level=info", "--log-level=debug") },
		"shorter drain": func(s *corev1.PodSpec) { replace(sidecar(s).Args, "--drain=30s", "--drain=500ms") },
		"text log":      func(s *corev1.PodSpec) { replace(sidecar(s).Args, "--log-format=json", "--log-format=text") },
		"no probes": func(s *corev1.PodSpec) {
			c := sidecar(s)
			c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = nil, nil, nil
		},
		"metrics": func(s *corev1.PodSpec) {
			moreArgs(capture, "--protect-port=3131")(s)
			env(sidecar, "EGRESSD_ADMIN", ":3131")(s)
			sidecar(s).StartupProbe = asks(corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("metrics")})
			sidecar(s).LivenessProbe = asks(corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(3131)})
		},
		"localhost": func(s *corev1.PodSpec) {
			capture(s).SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeLocalhost
		},
		"service account": mount(sidecar, "kube-api-access", "/var/run/secrets/kubernetes.io/serviceaccount"),
	}
}

func replace(list []string, old, next string) { list[slices.Index(list, old)] = next }

// freed lists what lets something out, or lets an agent look into egressd or forge its
// record.
func freed() map[string]edit {
	all := map[string]edit{
		"capture: help":             args(capture, "help", "capture"),
		"capture: nothing":          args(capture),
		"capture: no dns":           args(capture, "capture", "--uid=65532", "--transparent-port=3129"),
		"capture: by a variable":    env(capture, "EGRESSD_UID", "10001"),
		"capture: envFrom":          func(s *corev1.PodSpec) { capture(s).EnvFrom = []corev1.EnvFromSource{{Prefix: "EGRESSD_"}} },
		"capture: hook":             func(s *corev1.PodSpec) { capture(s).Lifecycle = &corev1.Lifecycle{PostStart: hook("/launch")} },
		"capture: probe":            func(s *corev1.PodSpec) { capture(s).LivenessProbe = &corev1.Probe{ProbeHandler: runs("/launch")} },
		"capture: workdir":          func(s *corev1.PodSpec) { capture(s).WorkingDir = "/tmp" },
		"capture: mount":            mount(capture, "egressd-policy", "/egressd"),
		"capture: unconfined":       unconfined(capture),
		"capture: writable":         writable(capture),
		"capture: image by prefix":  func(s *corev1.PodSpec) { capture(s).Image = "egressd:0.1.0-evil" },
		"egressd: image by prefix":  func(s *corev1.PodSpec) { sidecar(s).Image = "egressd:evil" },
		"egressd: unconfined":       unconfined(sidecar),
		"egressd: writable":         writable(sidecar),
		"egressd: help":             args(sidecar, "help"),
		"egressd: not captured tcp": args(sidecar, "--listen=127.0.0.1:3128", "--dns=:3130"),
		"egressd: root":             uid(sidecar, 0),
		"egressd: envFrom":          func(s *corev1.PodSpec) { sidecar(s).EnvFrom = []corev1.EnvFromSource{{Prefix: "EGRESSD_"}} },
		"egressd: command":          func(s *corev1.PodSpec) { sidecar(s).Command = []string{"/launch"} },
		"egressd: forged name": func(s *corev1.PodSpec) {
			env(sidecar, "POD_NAME", "somebody-else")(s)
		},
		"egressd: a secret nobody listed": func(s *corev1.PodSpec) {
			sidecar(s).Env = append(slices.Clone(sidecar(s).Env), corev1.EnvVar{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"},
			}})
		},
		"egressd: no policy":      func(s *corev1.PodSpec) { sidecar(s).Env = nil },
		"egressd: policy by file": mount(sidecar, "work", "/etc/egressd"),
		"egressd: policy subpath": func(s *corev1.PodSpec) { sidecar(s).VolumeMounts[0].SubPath = "x" },
		"egressd: tls roots":      mount(sidecar, "work", "/etc/ssl/certs"),
		"another policy":          func(s *corev1.PodSpec) { volume(s, "egressd-policy").ConfigMap.Name = "mine" },
		"another key": func(s *corev1.PodSpec) {
			volume(s, "egressd-policy").ConfigMap.Items = []corev1.KeyToPath{{Key: "evil", Path: "policy.yaml"}}
		},
		"policy of no configmap": func(s *corev1.PodSpec) {
			*volume(s, "egressd-policy") = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		},
		"sockets in a claim": func(s *corev1.PodSpec) {
			*volume(s, "egressd-run") = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}
		},
		"names from elsewhere": func(s *corev1.PodSpec) { s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"203.0.113.9"}} },
		"names from nobody":    func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSNone },
		"names from the node":  func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSDefault },
		"probe of a host": func(s *corev1.PodSpec) {
			program(s).StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: elsewhere("evil.example")}}
		},
		"hook to a host": func(s *corev1.PodSpec) {
			program(s).Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: elsewhere("evil.example")}}
		},
		"tcp probe of a host": func(s *corev1.PodSpec) {
			program(s).LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "203.0.113.9"}}}
		},
		"agent as egressd":       uid(program, egressUID),
		"agent as root":          uid(program, 0),
		"agent unconfined":       unconfined(program),
		"agent with its sockets": mount(program, "egressd-run", "/x"),
		"agent before the capture": func(s *corev1.PodSpec) {
			s.InitContainers = append([]corev1.Container{*program(s)}, s.InitContainers...)
		},
		"host network":            func(s *corev1.PodSpec) { s.HostNetwork = true },
		"debugger as egressd":     debugger(func(e *corev1.EphemeralContainer) { n := int64(egressUID); e.SecurityContext.RunAsUser = &n }),
		"debugger in egressd":     debugger(func(e *corev1.EphemeralContainer) { e.TargetContainerName = "egressd" }),
		"debugger called egressd": debugger(func(e *corev1.EphemeralContainer) { e.Name = "egressd" }),
		"agent proc unmasked": func(s *corev1.PodSpec) {
			unmasked := corev1.UnmaskedProcMount
			program(s).SecurityContext.ProcMount = &unmasked
		},
	}
	maps.Copy(all, freedByArguments())
	for which, l := range map[string]corev1.Lifecycle{"postStart": {PostStart: hook("/launch", "--", "x")}, "preStop": {PreStop: hook("/launch")}} {
		all[which+" of egressd"] = func(s *corev1.PodSpec) { sidecar(s).Lifecycle = &l }
	}
	return all
}

// freedByArguments lists arguments, variables and probes that let something out.
func freedByArguments() map[string]edit {
	all := map[string]edit{}
	for _, a := range []string{"--remove", "-remove", "--remove=true", "--print", "--print=true", "-print", "--netns=/proc/1/ns/net", "--hold", "--uid=10001"} {
		all["capture "+a] = moreArgs(capture, a)
	}
	for _, a := range []string{"--uid=10001", "-uid=10001", "--uid", "10001"} {
		all["capture instead "+a] = args(capture, "capture", a, "--transparent-port=3129", "--dns-port=3130")
	}
	for _, a := range []string{
		"--audit", "-audit", "--audit=true", "--allow=*", "--preset=github", "--policy=/tmp/p", "--listen=:3128", "--dns-upstream=203.0.113.9",
		"--host=api.example.com=203.0.113.9", "--events=/dev/null", "--admin=:3132", "--control=unix:/run/egressd/c", "--source=0.0.0.0/0=default",
		"--netns=/proc/1/ns/net", "--ca-bundle=/run/egressd/ca", "--drain=30s --audit", "--log-level=info\n--audit", "",
	} {
		all["egressd "+a] = moreArgs(sidecar, a)
	}
	for name, value := range map[string]string{
		"EGRESSD_AUDIT": "true", "EGRESSD_ALLOW": "*", "EGRESSD_POLICY": "/tmp/p", "EGRESSD_DNS_UPSTREAM": "203.0.113.9", "EGRESSD_EVENTS": "/dev/null",
		"EGRESSD_ADMIN": ":9", "EGRESSD_RESOURCE": "k8s.pod.name=somebody-else", "SSL_CERT_FILE": "/x", "GODEBUG": "x", "": "x",
	} {
		all["variable "+name] = env(sidecar, name, value)
	}
	for which, set := range map[string]func(*corev1.Container, *corev1.Probe){
		"startup": func(c *corev1.Container, p *corev1.Probe) { c.StartupProbe = p }, "readiness": func(c *corev1.Container, p *corev1.Probe) { c.ReadinessProbe = p },
		"liveness": func(c *corev1.Container, p *corev1.Probe) { c.LivenessProbe = p },
	} {
		all[which+" probe runs launch"] = func(s *corev1.PodSpec) { set(sidecar(s), &corev1.Probe{ProbeHandler: runs("/launch", "--", "x")}) }
		all[which+" probe asks outside"] = func(s *corev1.PodSpec) {
			set(sidecar(s), &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: elsewhere("evil.example")}})
		}
		for name, get := range map[string]corev1.HTTPGetAction{
			"another page": {Path: "/rules/unused"}, "a host": {Path: "/readyz", Host: "evil.example"},
			"a name": {Path: "/readyz", HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "evil.example"}}},
		} {
			all[which+" probe asks for "+name] = func(s *corev1.PodSpec) { set(sidecar(s), asks(get)) }
		}
	}
	return all
}

// Every pod of the corpus is either held or refused: each change alone, and each that
// frees together with ones that do not.
func TestAdmissionCorpus(t *testing.T) {
	a := newAdmission(t)
	original := podsOf(decode(t, render(t)))["egressd-agent"].Spec
	base := *original.DeepCopy()
	good, bad := held(), freed()
	pods := 0
	judge := func(refused bool, names []string, edits ...edit) {
		pods++
		spec := *base.DeepCopy()
		for _, e := range edits {
			e(&spec)
		}
		if messages := a.refusals(t, spec); (len(messages) > 0) != refused {
			t.Errorf("%q: refused %v, want %v: %q", names, !refused, refused, messages)
		}
	}
	goods := slices.Sorted(maps.Keys(good))
	for i, name := range goods {
		judge(false, []string{name}, good[name])
		next := goods[(i+7)%len(goods)]
		judge(false, []string{name, next}, good[name], good[next])
	}
	for i, name := range slices.Sorted(maps.Keys(bad)) {
		judge(true, []string{name}, bad[name])
		with := goods[i%len(goods)]
		judge(true, []string{with, name}, good[with], bad[name])
	}
	if pods < 200 {
		t.Errorf("%d pods in the corpus, want 200", pods)
	}
}

// Without any one of the validations, a pod of the corpus gets out.
func TestEachValidationIsNeeded(t *testing.T) {
	a := newAdmission(t)
	base := podsOf(decode(t, render(t)))["egressd-agent"].Spec
	all := slices.Clone(a.policy.Spec.Validations)
	needed := make([]bool, len(all))
	for _, change := range freed() {
		spec := *base.DeepCopy()
		change(&spec)
		if messages := a.refusals(t, spec); len(messages) == 1 {
			for i, v := range all {
				needed[i] = needed[i] || messages[0] == v.Message
			}
		}
	}
	for i, ok := range needed {
		if !ok {
			t.Error(fmt.Sprintf("no pod is refused by this validation alone: %s", all[i].Message))
		}
	}
}
