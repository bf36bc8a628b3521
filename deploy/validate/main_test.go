package validate

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what the chart renders to deploy/kubernetes")

const (
	chart     = "../helm/egressd"
	manifests = "../kubernetes"
	egressUID = 65532
)

// static is the environment in which everything of ours is built, the tools as
// well: so they are built once.
func static() []string { return append(os.Environ(), "CGO_ENABLED=0") }

// built finds, or builds, a tool that go.mod names: Helm or kubeconform.
func built(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		cmd := exec.Command("go", "tool", "-n", name)
		cmd.Env = static()
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	})
}

var tools = map[string]func() (string, error){"helm": built("helm"), "kubeconform": built("kubeconform")}

// tool runs one of the tools.
func tool(stdin []byte, name string, args ...string) ([]byte, error) {
	path, err := tools[name]()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	// Helm writes caches: into the test's directory, not into the user's.
	home := os.TempDir()
	cmd.Env = append(static(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// rendered keeps what render made: tests look at the same manifests.
var rendered sync.Map

// render is `helm template` with these further arguments.
func render(t *testing.T, args ...string) []byte {
	t.Helper()
	key := strings.Join(args, " ")
	if out, ok := rendered.Load(key); ok {
		return out.([]byte)
	}
	out, err := tool(nil, "helm", append([]string{"template", "egressd", chart, "--namespace", "agents"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	rendered.Store(key, out)
	return out
}

// decode reads manifests as the API server would with strict field validation.
func decode(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	var objects []runtime.Object
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var empty any
		if err := yaml.Unmarshal([]byte(doc), &empty); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if empty == nil {
			continue
		}
		if head, _ := empty.(map[string]any); head["apiVersion"] == "monitoring.coreos.com/v1" {
			continue // kubeconform holds it to the operator's schema
		}
		o, _, err := codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		objects = append(objects, o)
	}
	return objects
}

// find reports the one object of type T that keep likes.
func find[T runtime.Object](t *testing.T, objects []runtime.Object, keep func(T) bool) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if x, ok := o.(T); ok && (keep == nil || keep(x)) {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of that kind, not one", len(found))
	}
	return found[0]
}

// container finds a container or init container by name.
func container(t *testing.T, spec corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range list {
			if c.Name == name {
				return c
			}
		}
	}
	t.Fatalf("no container %s", name)
	return corev1.Container{}
}
