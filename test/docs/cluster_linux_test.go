//go:build system

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A world has no Kubernetes. Its kubectl and helm hold every manifest against
// the schemas of the real API, keep them in files, and carry out what has pods
// the way a kubelet does: init containers one after the other, native sidecars
// until their startup probe succeeds, then the rest, each a container of the
// world's engine in one network namespace.

const startTimeout = 2 * time.Minute

// object is what kubectl apply takes; everything is kept.
type object struct {
	text []byte
	Kind string `yaml:"kind"`
	Meta struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
		Notes     map[string]string `yaml:"annotations"`
	} `yaml:"metadata"`
	Data map[string]string `yaml:"data"`
	Spec struct {
		podSpec  `yaml:",inline"` // of a Pod
		Template struct {
			Spec podSpec `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

// pod reports the pod that o is or makes.
func (o *object) pod() *podSpec {
	if o.Kind == "Pod" {
		return &o.Spec.podSpec
	}
	return &o.Spec.Template.Spec
}

type podSpec struct {
	Security   securityContext `yaml:"securityContext"`
	Init       []containerSpec `yaml:"initContainers"`
	Containers []containerSpec `yaml:"containers"`
	Volumes    []struct {
		Name      string                 `yaml:"name"`
		ConfigMap *struct{ Name string } `yaml:"configMap"`
	} `yaml:"volumes"`
}

type containerSpec struct {
	Name     string                         `yaml:"name"`
	Image    string                         `yaml:"image"`
	Restart  string                         `yaml:"restartPolicy"`
	Command  []string                       `yaml:"command"`
	Args     []string                       `yaml:"args"`
	Env      []struct{ Name, Value string } `yaml:"env"`
	Security securityContext                `yaml:"securityContext"`
	Startup  *struct {
		Exec struct{ Command []string } `yaml:"exec"`
	} `yaml:"startupProbe"`
	Mounts []struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type securityContext struct {
	User         *int  `yaml:"runAsUser"`
	Group        *int  `yaml:"runAsGroup"`
	Escalation   *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRoot bool  `yaml:"readOnlyRootFilesystem"`
	Capabilities struct{ Add, Drop []string }
}

// cluster is the directory in which objects and volumes are kept.
type cluster struct{ dir string }

func newCluster() cluster { return cluster{filepath.Join(os.Getenv("HOME"), ".cluster")} }

// parseObjects reads manifests.
func parseObjects(data []byte) ([]object, error) {
	var out []object
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var o object
		if err := n.Decode(&o); err != nil {
			return nil, err
		}
		if o.Kind == "" {
			continue // an empty document
		}
		if o.text, err = yaml.Marshal(&n); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
}

// apply validates and keeps manifests, and starts what changed.
func (c cluster) apply(data []byte, namespace string) error {
	check := exec.Command("kubeconform", "-strict", "-schema-location", "deploy/validate/schemas/{{.ResourceKind}}{{.KindSuffix}}.json", "-")
	check.Stdin = bytes.NewReader(data)
	if out, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("the API server would refuse this: %s", out)
	}
	objects, err := parseObjects(data)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return errors.New("no objects passed to apply")
	}
	for _, o := range objects {
		if o.Meta.Namespace == "" && o.Kind != "Namespace" {
			o.Meta.Namespace = namespace
		}
		file := c.file(o.Meta.Namespace, o.Kind, o.Meta.Name)
		before, _ := os.ReadFile(file) // none: it is new
		verb := "configured"
		switch {
		case before == nil:
			verb = "created"
		case bytes.Equal(before, o.text):
			verb = "unchanged"
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, o.text, 0o644)); err != nil {
			return err
		}
		fmt.Printf("%s/%s %s\n", strings.ToLower(o.Kind), o.Meta.Name, verb)
		switch {
		case verb == "unchanged":
		case o.Kind == "ConfigMap":
			err = c.publish(o)
		case o.Kind == "Deployment" || o.Kind == "Job":
			err = c.start(o)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Kind, o.Meta.Name, err)
		}
	}
	return nil
}

func (c cluster) file(namespace, kind, name string) string {
	return filepath.Join(c.dir, "objects", "ns-"+namespace, strings.ToLower(kind)+"-"+name)
}

func (c cluster) volume(namespace, name string) string {
	return filepath.Join(c.dir, "config", namespace, name)
}

// publish writes a ConfigMap as the kubelet does: the files in a directory of
// their own, and ..data renamed to it in one step.
func (c cluster) publish(o object) error {
	dir := c.volume(o.Meta.Namespace, o.Meta.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // none at first
	steps := []error{os.Chmod(next, 0o755)}
	for name, text := range o.Data {
		steps = append(steps, os.WriteFile(filepath.Join(next, name), []byte(text), 0o644))
		if old == "" {
			steps = append(steps, os.Symlink("..data/"+name, filepath.Join(dir, name)))
		}
	}
	steps = append(steps, os.Symlink(filepath.Base(next), filepath.Join(dir, "..tmp")), os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	return errors.Join(steps...)
}

func podman(args ...string) (string, error) {
	out, err := exec.Command("podman", append([]string{"--log-level=error"}, args...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%w: %s", err, tail(string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// podName is what the containers of a pod are called in the engine.
func podName(namespace, name string) string { return namespace + "_" + name }

// stop removes the containers of a pod; there may be none.
func (c cluster) stop(pod string) {
	ids, err := podman("ps", "-aq", "--filter", "label=pod="+pod)
	if err == nil && ids != "" {
		// What shares the namespace first, then what owns it.
		_, _ = podman(append([]string{"rm", "-f", "-t", "5", "--depend"}, strings.Fields(ids)...)...)
	}
}

// start replaces the pod of a Deployment or a Job.
func (c cluster) start(o object) error {
	_, err := c.startAll(o, o.pod().Containers)
	return err
}

// startAll starts the init containers and sidecars of a pod, then these.
func (c cluster) startAll(o object, containers []containerSpec) (string, error) {
	pod, spec := podName(o.Meta.Namespace, o.Meta.Name), o.pod()
	c.stop(pod)
	if _, err := podman("run", "-d", "--label", "pod="+pod, "--name", pod, "--no-healthcheck", "docker.io/curlimages/curl:latest", "sleep", "infinity"); err != nil {
		return "", err
	}
	for _, ctr := range spec.Init {
		if ctr.Restart != "Always" {
			if out, err := podman(append([]string{"run"}, c.flags(o, ctr)...)...); err != nil {
				return "", fmt.Errorf("init container %s: %w: %s", ctr.Name, err, out)
			}
			continue
		}
		if _, err := podman(append([]string{"run", "-d"}, c.flags(o, ctr)...)...); err != nil {
			return "", err
		}
		if err := c.probe(pod, ctr); err != nil {
			return "", err
		}
	}
	for _, ctr := range containers {
		if _, err := podman(append([]string{"run", "-d"}, c.flags(o, ctr)...)...); err != nil {
			return "", err
		}
		if err := c.probe(pod, ctr); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (c cluster) probe(pod string, ctr containerSpec) error {
	if ctr.Startup == nil {
		return nil
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(startTimeout); ; <-tick.C {
		out, err := podman(append([]string{"exec", pod + "_" + ctr.Name}, ctr.Startup.Exec.Command...)...)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			logs, _ := podman("logs", pod+"_"+ctr.Name) // the more, the better
			return fmt.Errorf("%s does not start: %s\n%s", ctr.Name, out, logs)
		}
	}
}

// flags are podman run's for one container of o's pod.
func (c cluster) flags(o object, ctr containerSpec) []string {
	pod, own, all := podName(o.Meta.Namespace, o.Meta.Name), ctr.Security, o.pod().Security
	f := []string{"--label", "pod=" + pod, "--name", pod + "_" + ctr.Name, "--network", "container:" + pod, "--no-healthcheck"}
	user, group := own.User, own.Group
	if user == nil {
		user = all.User
	}
	if group == nil {
		group = all.Group
	}
	if user != nil && group != nil {
		f = append(f, "--user", fmt.Sprintf("%d:%d", *user, *group))
	}
	if own.ReadOnlyRoot {
		f = append(f, "--read-only", "--read-only-tmpfs=false")
	}
	if own.Escalation != nil && !*own.Escalation {
		f = append(f, "--security-opt", "no-new-privileges")
	}
	for _, cap := range own.Capabilities.Drop {
		f = append(f, "--cap-drop", cap)
	}
	for _, cap := range own.Capabilities.Add {
		f = append(f, "--cap-add", cap)
	}
	for _, e := range ctr.Env {
		f = append(f, "--env", e.Name+"="+e.Value)
	}
	for _, m := range ctr.Mounts {
		from := filepath.Join(c.dir, "volumes", pod, m.Name)
		for _, v := range o.pod().Volumes {
			if v.Name == m.Name && v.ConfigMap != nil {
				from = c.volume(o.Meta.Namespace, v.ConfigMap.Name)
			}
		}
		if err := errors.Join(os.MkdirAll(from, 0o755)); err == nil && !strings.Contains(from, "/config/") {
			_ = os.Chmod(from, 0o777) // an emptyDir is everybody's
		}
		mount := from + ":" + m.MountPath
		if m.ReadOnly {
			mount += ":ro"
		}
		f = append(f, "--volume", mount)
	}
	args := ctr.Args
	if len(ctr.Command) > 0 {
		f = append(f, "--entrypoint", ctr.Command[0])
		args = slices.Concat(ctr.Command[1:], ctr.Args)
	}
	return append(append(f, ctr.Image), args...)
}
