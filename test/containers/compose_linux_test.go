//go:build system

package containers

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const composeFile = "../../compose.yaml"

// The part of the Compose specification that compose.yaml uses, decoded
// strictly: what is not here would not be carried out.
type (
	composeProject struct {
		Name     string
		Services map[string]composeService
		Anchors  map[string]any `yaml:",inline"` // x-...
	}
	composeService struct {
		Image           string
		Build           string
		Command         words
		User            string
		ReadOnly        bool              `yaml:"read_only"`
		CapAdd          []string          `yaml:"cap_add"`
		CapDrop         []string          `yaml:"cap_drop"`
		SecurityOpt     []string          `yaml:"security_opt"`
		NetworkMode     string            `yaml:"network_mode"`
		Environment     map[string]string `yaml:"environment"`
		Volumes         []string
		Tmpfs           []string
		Restart         string
		Init            bool
		MemLimit        string                       `yaml:"mem_limit"` // no limits here
		PidsLimit       int                          `yaml:"pids_limit"`
		StopGracePeriod string                       `yaml:"stop_grace_period"`
		DependsOn       map[string]composeDependency `yaml:"depends_on"`
		Profiles        []string
		Healthcheck     *composeHealth
	}
	composeDependency struct{ Condition string }
	// Without start_interval: Docker Engine before 25 refuses the whole project.
	composeHealth struct {
		Test        []string
		Interval    string
		Timeout     string
		Retries     int
		StartPeriod string `yaml:"start_period"`
	}
)

// words is a command: a list, or one string that is split at spaces.
type words []string

func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = strings.Fields(n.Value)
		return nil
	}
	return n.Decode((*[]string)(w))
}

// readCompose reads the file, with vars in place of ${NAME:-default}.
func readCompose(t *testing.T, vars map[string]string) composeProject {
	t.Helper()
	data, err := os.ReadFile(composeFile)
	if err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\$\{([A-Z_]+):-([^}]*)\}`)
	data = variable.ReplaceAllFunc(data, func(m []byte) []byte {
		parts := variable.FindSubmatch(m)
		if v, ok := vars[string(parts[1])]; ok {
			return []byte(v)
		}
		return parts[2]
	})
	if i := bytes.IndexByte(data, '$'); i >= 0 {
		t.Fatalf("a $ that is not carried out: %.40s", data[i:])
	}
	var p composeProject
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	for key := range p.Anchors {
		if !strings.HasPrefix(key, "x-") {
			t.Fatalf("top-level %s is not carried out", key)
		}
	}
	return p
}

// composition runs a project.
type composition struct {
	r       *rig
	w       *world
	project composeProject
	policy  string // directory in place of ./deploy/compose/policy
	started map[string]bool
}

func newComposition(t *testing.T) *composition {
	t.Helper()
	r := need(t)
	c := &composition{
		r: r, w: r.newWorld(t), started: map[string]bool{}, policy: t.TempDir(),
		project: readCompose(t, map[string]string{"EGRESSD_IMAGE": r.image, "AGENT_IMAGE": r.base}),
	}
	if err := os.Chmod(c.policy, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.policy, "policy.yaml"), policyText)
	return c
}

// up starts a service after those that it depends on, and waits as it asks.
func (c *composition) up(t *testing.T, name string) {
	t.Helper()
	if c.started[name] {
		return
	}
	c.dependencies(t, name)
	c.r.start(t, c.container(t, name))
	c.started[name] = true
}

func (c *composition) dependencies(t *testing.T, name string) {
	t.Helper()
	needed := c.project.Services[name].DependsOn
	var order []string
	for other := range needed {
		order = append(order, other)
	}
	slices.Sort(order)
	for _, other := range order {
		c.up(t, other)
		if needed[other].Condition != "service_healthy" {
			t.Fatalf("condition %s is not carried out", needed[other].Condition)
		}
		check := c.project.Services[other].Healthcheck
		if check == nil || len(check.Test) < 2 || check.Test[0] != "CMD" {
			t.Fatalf("%s has no health check that is carried out", other)
		}
		eventually(t, other+" is healthy", readyTime, func() bool {
			_, _, code := c.r.exec(other, "", check.Test[1:]...)
			return code == 0
		})
	}
}

func (c *composition) container(t *testing.T, name string) container {
	t.Helper()
	s, ok := c.project.Services[name]
	if !ok {
		t.Fatalf("no service %s", name)
	}
	x := container{
		name: name, image: s.Image, args: s.Command, user: s.User, readOnly: s.ReadOnly, capAdd: s.CapAdd, capDrop: s.CapDrop, tmpfs: s.Tmpfs,
		mounts: []string{c.w.caFile + ":/ca.pem:ro", c.r.probe + ":/probe:ro", c.w.resolv + ":/etc/resolv.conf:ro"},
	}
	for k, v := range s.Environment {
		x.env = append(x.env, k+"="+v)
	}
	switch owner, shared := strings.CutPrefix(s.NetworkMode, "service:"); {
	case shared:
		x.network = "container:" + c.r.id + "-" + owner
	case s.NetworkMode == "":
		x.network = "ns:" + c.w.inside // in place of the project's network
	default:
		t.Fatalf("network_mode %s is not carried out", s.NetworkMode)
	}
	if s.Init {
		x.extra = append(x.extra, "--init")
	}
	for _, o := range s.SecurityOpt {
		if o != "no-new-privileges:true" {
			t.Fatalf("security_opt %s is not carried out", o)
		}
		x.noNewPrivs = true
	}
	for _, v := range s.Volumes {
		rest, ok := strings.CutPrefix(v, "./deploy/compose/policy:")
		if !ok {
			t.Fatalf("volume %s is not carried out", v)
		}
		x.mounts = append(x.mounts, c.policy+":"+rest)
	}
	return x
}

// TestCompose runs the shipped file: up, the agent's view, verify, and a
// killed egressd.
func TestCompose(t *testing.T) {
	c := newComposition(t)
	c.up(t, "agent")
	agent := func(argv ...string) (string, string, int) { return c.r.exec("agent", "", argv...) }
	hello := "hello from " + allowedHost
	for _, argv := range [][]string{
		{"curl", "-sS", "--cacert", "/ca.pem", "https://" + allowedHost + "/"},
		{"curl", "-sS", "--noproxy", "*", "--cacert", "/ca.pem", "https://" + allowedHost + "/"},
	} {
		if stdout, stderr, code := agent(argv...); code != 0 || !strings.Contains(stdout, hello) {
			t.Errorf("%v: exit code %d\n%s%s", argv, code, stdout, stderr)
		}
	}
	if stdout, _, _ := agent("curl", "-sS", "http://"+deniedHost+"/"); !strings.Contains(stdout, "To allow it") {
		t.Errorf("a denial does not say what would allow it: %s", stdout)
	}
	c.r.attack(t, append(slices.Clone(bypasses), privileges...))
	c.verify(t)

	if err := c.r.podman("kill", "-s", "KILL", c.r.id+"-egressd").run(); err != nil {
		t.Fatal(err)
	}
	if _, _, code := agent("curl", "-sS", "--noproxy", "*", "--max-time", "5", "--cacert", "/ca.pem", "https://"+allowedHost+"/"); code == 0 {
		t.Error("without egressd even what is allowed must fail")
	}
	if err := c.r.podman("start", c.r.id+"-egressd").run(); err != nil {
		t.Fatal(err)
	}
	c.r.ready(t, "egressd")
	if stdout, stderr, code := agent("curl", "-sS", "--noproxy", "*", "--cacert", "/ca.pem", "https://"+allowedHost+"/"); code != 0 {
		t.Errorf("the same agent does not work with the restarted egressd: %s%s", stdout, stderr)
	}
	// Saved as editors save: a new file in the place of the old one.
	write(t, filepath.Join(c.policy, "policy.yaml~"), "allow:\n  - "+otherHost+"\n")
	if err := os.Rename(filepath.Join(c.policy, "policy.yaml~"), filepath.Join(c.policy, "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the saved policy is in force", 10*time.Second, func() bool {
		_, _, code := agent("curl", "-sS", "--cacert", "/ca.pem", "https://"+otherHost+"/")
		return code == 0
	})
	if c.w.strays.Load() != 0 {
		t.Errorf("something reached the outside past the policy: %v", c.w.strayed())
	}
}

// verify is `docker compose run --rm verify`.
func (c *composition) verify(t *testing.T) {
	t.Helper()
	if s := c.project.Services["verify"]; !slices.Equal(s.Profiles, []string{"verify"}) {
		t.Errorf("verify would start with the rest: profiles %v", s.Profiles)
	}
	c.dependencies(t, "verify")
	stdout, stderr, code := c.r.run(c.container(t, "verify"))
	if code != 0 {
		t.Errorf("verify: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// Only the service that installs the rules has a capability, and only egressd
// has the user that they let pass.
func TestComposePrivileges(t *testing.T) {
	p := readCompose(t, nil)
	for name, s := range p.Services {
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s keeps capabilities", name)
		}
		if (len(s.CapAdd) > 0) != (name == "capture") {
			t.Errorf("%s: cap_add %v", name, s.CapAdd)
		}
		if (s.User == "65532:65532") != (name == "egressd") || s.User == "" || s.User == "0:0" && name != "capture" {
			t.Errorf("%s runs as %q", name, s.User)
		}
		if name != "agent" && !s.ReadOnly {
			t.Errorf("%s can write to its root", name)
		}
		if len(s.Volumes)+len(s.Tmpfs) > 0 && name != "egressd" {
			t.Errorf("%s shares %v %v", name, s.Volumes, s.Tmpfs)
		}
		if name == "capture" {
			continue
		}
		if s.NetworkMode != "service:capture" || s.DependsOn["capture"].Condition != "service_healthy" {
			t.Errorf("%s may run before the rules are there", name)
		}
		if name != "egressd" && s.DependsOn["egressd"].Condition != "service_healthy" {
			t.Errorf("%s may run before egressd is ready", name)
		}
	}
}
