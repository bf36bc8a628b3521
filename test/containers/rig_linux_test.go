//go:build system

package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// keptBase is a base image that an earlier run has kept: with
	// KEEP_TEST_IMAGES in its environment a run leaves it.
	keptBase   = "localhost/egressd-test-base:1"
	basePkgs   = "curl,python3,ca-certificates,nftables,iproute2"
	stepTime   = 2 * time.Minute // one command
	readyTime  = 20 * time.Second
	testTarget = "v9.8.7-test" // the version that the image is told
)

// rig is what the tests of a run share: images, and where things are kept.
type rig struct {
	dir   string // of this run, removed at its end
	id    string // of this run, part of every name
	image string // egressd's
	// launchImage is what the target launch of the same Dockerfile makes.
	launchImage string
	goImg       string
	// base has a shell, curl, Python, nft and ip: the agent's image, and with the
	// host's Go the builder's.
	base  string
	made  []string // images to remove
	probe string   // the attacker, a static binary
	// seccomp is the profile in the place of Docker's and containerd's own:
	// Podman's lets AF_VSOCK through, the way from a virtual machine to its host.
	seccomp string

	once sync.Once
	err  error
}

// shared is made by TestMain and built by the first test that needs it.
var shared = &rig{id: fmt.Sprintf("egressd-test-%d", os.Getpid())}

func TestMain(m *testing.M) {
	code := m.Run()
	shared.cleanUp()
	os.Exit(code)
}

// need builds the images, once.
func need(t *testing.T) *rig {
	t.Helper()
	needRoot(t)
	shared.once.Do(func() { shared.err = shared.build() })
	if errors.Is(shared.err, errNoBase) && os.Getenv("CI") == "" {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("as root only: containers on a network made by hand, and debootstrap, need it")
	}
	for _, name := range []string{"podman", "buildah", "runc", "debootstrap", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: apt-get install podman buildah runc debootstrap iproute2", name)
		}
	}
}

func (r *rig) build() error {
	var err error
	if r.dir, err = os.MkdirTemp("/var/tmp", "egressd-containers-"); err != nil {
		return err
	}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		return err
	}
	// Podman's settings for machines without a systemd of their own.
	conf := "[engine]\ncgroup_manager=\"cgroupfs\"\nruntime=\"runc\"\n[containers]\nlog_driver=\"k8s-file\"\n" +
		"default_ulimits=[\"nofile=4096:4096\",\"nproc=4096:4096\"]\n"
	if err := os.WriteFile(r.conf(), []byte(conf), 0o644); err != nil {
		return err
	}
	if r.seccomp, err = filepath.Abs("../../deploy/seccomp/agent.json"); err != nil {
		return err
	}
	r.probe = filepath.Join(r.dir, "probe")
	if err := r.cmd("go", "build", "-buildvcs=false", "-trimpath", "-o", r.probe, "../e2e/probe").run(); err != nil {
		return err
	}
	if err := r.buildBase(); err != nil {
		return err
	}
	return r.buildImage()
}

func (r *rig) conf() string { return filepath.Join(r.dir, "containers.conf") }

// errNoBase is a machine's that no Debian mirror serves.
var errNoBase = errors.New("the base image of the agent cannot be made")

// buildBase debootstraps the base image where none is kept.
func (r *rig) buildBase() error {
	if r.podman("image", "exists", keptBase).run() == nil {
		r.base = keptBase
		return nil
	}
	r.base = "localhost/" + r.id + "-base:latest" // of this run, as others may run beside it
	r.made = append(r.made, r.base)
	root := filepath.Join(r.dir, "root")
	args := []string{"--variant=minbase", "--include=" + basePkgs, "bookworm", root}
	if mirror := debianMirror(); mirror != "" {
		args = append(args, mirror)
	}
	if err := r.cmd("debootstrap", args...).run(); err != nil {
		return errors.Join(errNoBase, err)
	}
	slim := "rm -rf var/cache/apt var/lib/apt/lists usr/share/doc usr/share/man usr/share/locale && tar -c . | podman import -q - " + r.base
	c := r.cmd("sh", "-c", slim)
	c.dir = root
	if err := c.run(); err != nil {
		return err
	}
	if os.Getenv("KEEP_TEST_IMAGES") != "" {
		if err := r.podman("tag", r.base, keptBase).run(); err != nil {
			return err
		}
	}
	return os.RemoveAll(root)
}

// debianMirror is the mirror that this machine installs packages from; "" is
// debootstrap's own choice.
func debianMirror() string {
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*") // the pattern is well-formed
	for _, f := range append([]string{"/etc/apt/sources.list"}, files...) {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(data), "\n") {
			for _, word := range strings.Fields(line) {
				if strings.HasPrefix(word, "http") && strings.HasSuffix(strings.TrimSuffix(word, "/"), "/debian") && !strings.HasPrefix(strings.TrimSpace(line), "#") {
					return word
				}
			}
		}
	}
	return ""
}

// buildImage builds the Dockerfile as it is. Containers have no network here,
// so that the host's Go and its modules take the place of those of golang:1.26.
func (r *rig) buildImage() error {
	r.image = "localhost/" + r.id + ":latest"
	r.launchImage = "localhost/" + r.id + "-launch:latest"
	r.goImg = "localhost/" + r.id + "-go:latest"
	r.made = append(r.made, r.image, r.launchImage, r.goImg)
	env := map[string]string{}
	for _, name := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
		out, err := r.cmd("go", "env", name).output()
		if err != nil {
			return err
		}
		env[name] = strings.TrimSpace(out)
	}
	from, err := r.cmd("buildah", "from", "--pull-never", r.base).output()
	if err != nil {
		return err
	}
	from = strings.TrimSpace(from)
	build := func(args ...string) []string {
		return slices.Concat([]string{
			"bud", "--isolation", "chroot", "--format", "docker", "--pull-never", "--layers=false",
			"--build-arg", "GO_IMAGE=" + r.goImg, "--build-arg", "VERSION=" + testTarget, "--build-arg", "TARGETOS=", "--build-arg", "TARGETARCH=",
			"--volume", env["GOROOT"] + ":/usr/local/go:ro", "--volume", env["GOMODCACHE"] + ":/modules:ro", "--volume", env["GOCACHE"] + ":/cache",
		}, args, []string{"../.."})
	}
	for _, args := range [][]string{
		{
			"config", "--env", "PATH=/usr/local/go/bin:/usr/bin:/bin", "--env", "GOPROXY=off", "--env", "GOTOOLCHAIN=local",
			"--env", "GOMODCACHE=/modules", "--env", "GOCACHE=/cache", from,
		},
		{"commit", "-q", "--rm", from, r.goImg},
		build("-t", r.image),
		build("--target", "launch", "-t", r.launchImage),
	} {
		if err := r.cmd("buildah", args...).run(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) cleanUp() {
	if r.dir == "" {
		return
	}
	var errs []error
	if ids, err := r.podman("ps", "-aq", "--filter", "label="+r.id).output(); err == nil && strings.TrimSpace(ids) != "" {
		errs = append(errs, r.podman(append([]string{"rm", "-f", "-t", "0"}, strings.Fields(ids)...)...).run())
	}
	for _, image := range r.made {
		_ = r.podman("rmi", "-f", image).run() // it may not have come to it
	}
	// Only layers that nothing names any more, and that this build has made.
	_ = r.podman("image", "prune", "-f", "--filter", "label=org.opencontainers.image.version="+testTarget).run()
	errs = append(errs, os.RemoveAll(r.dir))
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "containers:", err)
	}
}

// command is a program with a bounded life.
type command struct {
	name  string
	args  []string
	env   []string
	dir   string
	stdin string
	limit time.Duration
}

func (r *rig) cmd(name string, args ...string) *command {
	// EGRESSD_ variables configure egressd: those of the tests are no business of its.
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "EGRESSD_") })
	return &command{name: name, args: args, env: append(env, "CGO_ENABLED=0", "CONTAINERS_CONF="+r.conf()), limit: stepTime * 2}
}

func (r *rig) podman(args ...string) *command { return r.cmd("podman", args...) }

func (c *command) run() error {
	_, err := c.output()
	return err
}

// output is what the command writes to its standard output; an error holds
// what it wrote to the standard error.
func (c *command) output() (string, error) {
	stdout, stderr, err := c.both()
	if err != nil {
		return stdout, fmt.Errorf("%s %s: %w\n%s%s", c.name, strings.Join(c.args, " "), err, stdout, stderr)
	}
	return stdout, nil
}

func (c *command) both() (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.Env, cmd.Dir, cmd.Stdin = c.env, c.dir, strings.NewReader(c.stdin)
	cmd.WaitDelay = 5 * time.Second
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

// exitCode is the code behind err; -1 when the program did not run to its end.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// helm runs Helm, as deploy/validate pins it, in that directory.
func (r *rig) helm(args ...string) (string, error) {
	c := r.cmd("go", append([]string{"tool", "helm"}, args...)...)
	c.dir = "../../deploy/validate"
	c.env = append(c.env, "HELM_CACHE_HOME="+r.dir, "HELM_CONFIG_HOME="+r.dir, "HELM_DATA_HOME="+r.dir)
	return c.output()
}
