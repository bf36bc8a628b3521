//go:build system

package containers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// The part of Kubernetes' API that the manifest uses. It is decoded strictly: a
// field that is not here would not be carried out, so it is an error.
type (
	k8sPod struct {
		ServiceAccountName            string         `yaml:"serviceAccountName"`
		AutomountServiceAccountToken  bool           `yaml:"automountServiceAccountToken"`
		EnableServiceLinks            bool           `yaml:"enableServiceLinks"`
		RestartPolicy                 string         `yaml:"restartPolicy"`
		TerminationGracePeriodSeconds int            `yaml:"terminationGracePeriodSeconds"`
		SecurityContext               k8sSecurity    `yaml:"securityContext"`
		InitContainers                []k8sContainer `yaml:"initContainers"`
		Containers                    []k8sContainer `yaml:"containers"`
		Volumes                       []k8sVolume    `yaml:"volumes"`
	}
	k8sContainer struct {
		Name            string      `yaml:"name"`
		Image           string      `yaml:"image"`
		ImagePullPolicy string      `yaml:"imagePullPolicy"`
		RestartPolicy   string      `yaml:"restartPolicy"`
		Command         []string    `yaml:"command"`
		Args            []string    `yaml:"args"`
		Env             []k8sEnv    `yaml:"env"`
		Ports           []k8sPort   `yaml:"ports"` // Kubernetes only shows them; probes name them
		SecurityContext k8sSecurity `yaml:"securityContext"`
		StartupProbe    *k8sProbe   `yaml:"startupProbe"`
		ReadinessProbe  *k8sProbe   `yaml:"readinessProbe"`
		LivenessProbe   *k8sProbe   `yaml:"livenessProbe"`
		Resources       any         `yaml:"resources"` // no scheduler, no limits here
		VolumeMounts    []k8sMount  `yaml:"volumeMounts"`
	}
	k8sEnv struct {
		Name, Value string
		ValueFrom   *struct {
			FieldRef *struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	k8sSecurity struct {
		RunAsUser                *int  `yaml:"runAsUser"`
		RunAsGroup               *int  `yaml:"runAsGroup"`
		FSGroup                  *int  `yaml:"fsGroup"`
		RunAsNonRoot             *bool `yaml:"runAsNonRoot"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Add, Drop []string }
		SeccompProfile           struct{ Type string } `yaml:"seccompProfile"`
	}
	k8sProbe struct {
		Exec             struct{ Command []string }
		HTTPGet          *struct{ Path, Port string } `yaml:"httpGet"`
		PeriodSeconds    int                          `yaml:"periodSeconds"`
		TimeoutSeconds   int                          `yaml:"timeoutSeconds"`
		FailureThreshold int                          `yaml:"failureThreshold"`
	}
	k8sPort struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
		Protocol      string `yaml:"protocol"`
	}
	k8sMount struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	}
	k8sVolume struct {
		Name      string
		ConfigMap *struct{ Name string } `yaml:"configMap"`
		EmptyDir  *struct {
			Medium    string
			SizeLimit string `yaml:"sizeLimit"`
		} `yaml:"emptyDir"`
	}
	k8sObject struct {
		Kind     string `yaml:"kind"`
		Metadata struct {
			Name string `yaml:"name"`
		} `yaml:"metadata"`
		Data map[string]string `yaml:"data"`
		Spec yaml.Node         `yaml:"spec"`
	}
	k8sDeployment struct {
		Template struct {
			Spec yaml.Node `yaml:"spec"`
		} `yaml:"template"`
	}
)

// kubelet runs the one pod of a manifest.
type kubelet struct {
	r       *rig
	w       *world
	pod     k8sPod
	configs map[string]map[string]string
	dir     string            // for volumes
	images  map[string]string // of the manifest -> of this run
	volumes map[string]string // name -> directory
	agent   func(*container)  // changes the agent's container before it starts
	ended   string            // what the container of a pod that runs once wrote
	code    int               // its exit code
}

// newKubelet reads a manifest: its Deployment, or when want is "Pod" that.
func newKubelet(t *testing.T, r *rig, w *world, manifest, want string) *kubelet {
	t.Helper()
	k := &kubelet{r: r, w: w, dir: t.TempDir(), configs: map[string]map[string]string{}, volumes: map[string]string{}}
	if err := os.Chmod(k.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var o k8sObject
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch o.Kind {
		case "ConfigMap":
			k.configs[o.Metadata.Name] = o.Data
		case want:
			k.read(t, &o.Spec, want)
		}
	}
	if len(k.pod.Containers) == 0 {
		t.Fatal("no pod in ", manifest)
	}
	return k
}

func (k *kubelet) read(t *testing.T, spec *yaml.Node, kind string) {
	t.Helper()
	if kind == "Deployment" {
		var d k8sDeployment
		if err := spec.Decode(&d); err != nil {
			t.Fatal(err)
		}
		spec = &d.Template.Spec
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&k.pod); err != nil {
		t.Fatal(err)
	}
}

// run starts the pod as Kubernetes does: init containers one after the other,
// native sidecars until their startup probe succeeds, then the rest.
func (k *kubelet) run(t *testing.T) {
	t.Helper()
	for _, v := range k.pod.Volumes {
		k.mountVolume(t, v)
	}
	for _, c := range k.pod.InitContainers {
		if c.RestartPolicy != "Always" {
			stdout, stderr, code := k.r.run(k.container(t, c))
			if code != 0 {
				t.Fatalf("init container %s: exit code %d\n%s%s", c.Name, code, stdout, stderr)
			}
			continue
		}
		k.r.start(t, k.container(t, c))
		k.probe(t, c, c.StartupProbe)
	}
	for _, c := range k.pod.Containers {
		x := k.container(t, c)
		if k.agent != nil {
			k.agent(&x)
		}
		if k.pod.RestartPolicy == "Never" {
			stdout, stderr, code := k.r.run(x)
			k.ended, k.code = stdout+stderr, code
			return
		}
		k.r.start(t, x)
	}
}

// probe asks as the kubelet does: a program in the container, or a page at the pod's address,
// from outside of the pod.
func (k *kubelet) probe(t *testing.T, c k8sContainer, p *k8sProbe) {
	t.Helper()
	if p == nil {
		return
	}
	limit := time.Duration(p.PeriodSeconds*p.FailureThreshold) * time.Second
	eventually(t, c.Name+"'s startup probe", min(limit, readyTime), func() bool {
		if p.HTTPGet == nil {
			_, _, code := k.r.exec(c.Name, "", p.Exec.Command...)
			return code == 0
		}
		for _, port := range c.Ports {
			if port.Name == p.HTTPGet.Port {
				_, err := k.w.get(fmt.Sprintf("http://%s:%d%s", podAddr, port.ContainerPort, p.HTTPGet.Path))
				return err == nil
			}
		}
		t.Fatalf("a probe asks for port %s, which %s does not have", p.HTTPGet.Port, c.Name)
		return false
	})
}

// podFields are what a fieldRef may name here, and what the one pod of this node has there.
var podFields = map[string]string{"metadata.name": "pod-of-the-test", "metadata.namespace": "default", "spec.nodeName": "node-of-the-test"}

// environment resolves references to fields of the pod, and $(NAME) of variables that stand before.
func environment(t *testing.T, env []k8sEnv) []string {
	t.Helper()
	var out, known []string
	for _, e := range env {
		value := strings.NewReplacer(known...).Replace(e.Value)
		if from := e.ValueFrom; from != nil {
			if from.FieldRef == nil || podFields[from.FieldRef.FieldPath] == "" {
				t.Fatalf("the value of %s comes from what this kubelet does not know", e.Name)
			}
			value = podFields[from.FieldRef.FieldPath]
		}
		known = append(known, "$("+e.Name+")", value)
		out = append(out, e.Name+"="+value)
	}
	return out
}

// container is what the manifest asks for.
func (k *kubelet) container(t *testing.T, c k8sContainer) container {
	t.Helper()
	image := k.images[c.Image]
	if image == "" {
		t.Fatalf("image %s is not one of %v", c.Image, k.images)
	}
	x := container{
		name: c.Name, image: image, network: "ns:" + k.w.inside, args: c.Args,
		mounts: []string{k.w.resolv + ":/etc/resolv.conf:ro"},
	}
	if len(c.Command) > 0 {
		x.entrypoint, x.args = c.Command[0], append(slices.Clone(c.Command[1:]), c.Args...)
	}
	pod, own := k.pod.SecurityContext, c.SecurityContext
	x.user = ids(t, or(own.RunAsUser, pod.RunAsUser), or(own.RunAsGroup, pod.RunAsGroup))
	if n := or(own.RunAsNonRoot, pod.RunAsNonRoot); n != nil && *n && strings.HasPrefix(x.user, "0:") {
		t.Fatalf("%s would run as root, which runAsNonRoot forbids", c.Name)
	}
	if x.readOnly = own.ReadOnlyRootFilesystem; x.readOnly {
		x.extra = append(x.extra, "--read-only-tmpfs=false") // a kubelet adds no mount
	}
	x.noNewPrivs = own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation
	x.capAdd, x.capDrop = own.Capabilities.Add, own.Capabilities.Drop
	x.env = environment(t, c.Env)
	for _, m := range c.VolumeMounts {
		dir := k.volumes[m.Name]
		if dir == "" {
			t.Fatalf("%s mounts %s, which is no volume of the pod", c.Name, m.Name)
		}
		mount := dir + ":" + m.MountPath
		if m.ReadOnly {
			mount += ":ro"
		}
		x.mounts = append(x.mounts, mount)
	}
	return x
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func ids(t *testing.T, user, group *int) string {
	t.Helper()
	if user == nil || group == nil {
		t.Fatal("no runAsUser or runAsGroup: what the image says would count")
	}
	return strconv.Itoa(*user) + ":" + strconv.Itoa(*group)
}

func (k *kubelet) mountVolume(t *testing.T, v k8sVolume) {
	t.Helper()
	dir := filepath.Join(k.dir, v.Name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	k.volumes[v.Name] = dir
	switch {
	case v.ConfigMap != nil:
		k.writeConfigMap(t, v.Name, k.configs[v.ConfigMap.Name])
	case v.EmptyDir != nil && v.EmptyDir.Medium == "Memory":
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=0777"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	default:
		t.Fatalf("volume %s is of a kind that is not carried out here", v.Name)
	}
}

// writeConfigMap does what the kubelet does: the files in a directory of their
// own, ..data pointing there, and for a change a new directory and ..data
// renamed in one step.
func (k *kubelet) writeConfigMap(t *testing.T, volume string, data map[string]string) {
	t.Helper()
	if len(data) == 0 {
		t.Fatalf("the config map of %s is empty", volume)
	}
	dir := k.volumes[volume]
	files, err := os.MkdirTemp(dir, "..2026_")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range data {
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	steps := []error{
		os.Chmod(files, 0o755),
		os.Symlink(filepath.Base(files), filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
	}
	for name := range data {
		if link := filepath.Join(dir, name); old == "" {
			steps = append(steps, os.Symlink("..data/"+name, link))
		}
	}
	if old != "" {
		steps = append(steps, os.RemoveAll(filepath.Join(dir, old)))
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
}
