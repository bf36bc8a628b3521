//go:build system

package containers

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the images may take, unpacked.
const (
	maxImageBytes       = 15_500_000
	maxLaunchImageBytes = 24_000_000 // three tiers, the interpreter and the double of the hosted API among them
)

// imageConfig is what the image of a target says of itself.
type imageConfig struct {
	Size         int64
	Architecture string
	Config       struct {
		User       string
		Entrypoint []string
		Cmd        []string
		Env        []string
		Labels     map[string]string
		StopSignal string
	}
	HealthCheck *struct{ Test []string }
}

// inspect reads the configuration of an image, and checks what holds for both.
func (r *rig) inspect(t *testing.T, name string, maxBytes int64) imageConfig {
	t.Helper()
	out, err := r.podman("image", "inspect", name).output()
	if err != nil {
		t.Fatal(err)
	}
	var images []imageConfig
	if err := json.Unmarshal([]byte(out), &images); err != nil || len(images) != 1 {
		t.Fatal(err, out)
	}
	image := images[0]
	t.Logf("the image takes %.1f MB", float64(image.Size)/1e6)
	if image.Size >= maxBytes {
		t.Errorf("the image takes %d bytes, at most %d", image.Size, maxBytes)
	}
	if c := image.Config; c.User != "65532:65532" || len(c.Cmd) != 0 || c.StopSignal != "SIGTERM" && c.StopSignal != "15" {
		t.Errorf("user %q, arguments %v, stop signal %q", c.User, c.Cmd, c.StopSignal)
	}
	for _, label := range []string{"title", "description", "licenses", "version", "revision"} {
		if image.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("label %s is missing", label)
		}
	}
	return image
}

// file is what is to be of a file in an image.
type file struct {
	mode int64
	uid  int
}

// The image holds one program, CA roots and an empty policy, and runs it as
// nobody in particular.
func TestImage(t *testing.T) {
	r := need(t)
	image := r.inspect(t, r.image, maxImageBytes)
	c := image.Config
	if !slices.Equal(c.Entrypoint, []string{"/egressd"}) {
		t.Errorf("entrypoint %v", c.Entrypoint)
	}
	if image.HealthCheck == nil || !slices.Equal(image.HealthCheck.Test, []string{"CMD", "/egressd", "healthcheck"}) {
		t.Errorf("health check %+v", image.HealthCheck)
	}
	for _, want := range []string{"EGRESSD_POLICY=/etc/egressd/policy.yaml", "EGRESSD_ADMIN=unix:/sockets/admin.sock"} {
		if !slices.Contains(c.Env, want) {
			t.Errorf("%s is not in %v", want, c.Env)
		}
	}
	r.checkFiles(t, r.image, map[string]file{
		"egressd": {0o755, 0}, "etc/egressd/policy.yaml": {0o644, 0}, "etc/ssl/certs/ca-certificates.crt": {0o644, 0},
		"sockets": {0o1777, 65532}, "etc": {0o755, 0}, "etc/egressd": {0o755, 0}, "etc/ssl": {0o755, 0}, "etc/ssl/certs": {0o755, 0},
	})
}

// The other target of the Dockerfile holds launch and CA roots.
func TestLaunchImage(t *testing.T) {
	r := need(t)
	image := r.inspect(t, r.launchImage, maxLaunchImageBytes)
	if c := image.Config; !slices.Equal(c.Entrypoint, []string{"/launch"}) || image.HealthCheck != nil {
		t.Errorf("entrypoint %v, health check %+v", c.Entrypoint, image.HealthCheck)
	}
	r.checkFiles(t, r.launchImage, map[string]file{
		"launch": {0o755, 0}, "etc/ssl/certs/ca-certificates.crt": {0o644, 0}, "etc": {0o755, 0}, "etc/ssl": {0o755, 0}, "etc/ssl/certs": {0o755, 0},
	})
	for _, tt := range []struct {
		name, arg string
		code      int
		out       string
	}{{"launch-version", "version", 0, testTarget}, {"launch-help", "help", 0, "--tier"}} {
		c := container{name: tt.name, image: r.launchImage, network: "none", capDrop: []string{"ALL"}, noNewPrivs: true, readOnly: true, args: []string{tt.arg}}
		if stdout, stderr, code := r.run(c); code != tt.code || !strings.Contains(stdout+stderr, tt.out) {
			t.Errorf("launch %s: exit code %d, want %d with %q\n%s%s", tt.arg, code, tt.code, tt.out, stdout, stderr)
		}
	}
}

// checkFiles compares what is in an image with what should be.
func (r *rig) checkFiles(t *testing.T, image string, want map[string]file) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "root.tar")
	id, err := r.podman("create", "--pull", "never", "--label", r.id, image).output()
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	defer func() {
		if err := r.podman("rm", "-f", id).run(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.podman("export", "-o", archive, id).run(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Mount points that the runtime makes.
	runtime := []string{"dev", "proc", "sys", "tmp", "run/.containerenv", "etc/hosts", "etc/resolv.conf", "etc/hostname", "etc/mtab", "var", "var/tmp", "run", "run/secrets"}
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Trim(h.Name, "/")
		w, ok := want[name]
		switch {
		case !ok && !slices.Contains(runtime, name) && !strings.HasPrefix(name, "dev/"):
			t.Errorf("%s is in the image", h.Name)
		case ok && (h.Mode&0o7777 != w.mode || h.Uid != w.uid):
			t.Errorf("%s: mode %o, uid %d; want %o, %d", name, h.Mode, h.Uid, w.mode, w.uid)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is not in the image", name)
	}
}

// What a person tries first, on a root that cannot be written.
func TestImageRuns(t *testing.T) {
	r := need(t)
	base := container{
		image: r.image, network: "none", capDrop: []string{"ALL"}, noNewPrivs: true, readOnly: true,
		tmpfs: []string{"/sockets:size=1m,mode=1777"},
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		out  string
	}{
		{"version", []string{"version"}, 0, "egressd " + testTarget},
		{"help", []string{"help"}, 0, "--policy"},
		{"check", []string{"check", "/etc/egressd/policy.yaml"}, 0, ""},
		{"misuse", []string{"--no-such-flag"}, 2, "no-such-flag"},
		{"no policy", []string{"--policy", "/nowhere.yaml"}, 2, "/nowhere.yaml"},
	} {
		c := base
		c.name, c.args = strings.ReplaceAll(tt.name, " ", "-"), tt.args
		if stdout, stderr, code := r.run(c); code != tt.code || !strings.Contains(stdout+stderr, tt.out) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", tt.name, code, tt.code, tt.out, stdout, stderr)
		}
	}
	// Without any argument: everything is denied. And a stop is a clean end.
	c := base
	c.name = "bare"
	r.start(t, c)
	r.ready(t, "bare")
	if err := r.podman("stop", "-t", "20", r.id+"-bare").run(); err != nil {
		t.Fatal(err)
	}
	if out, err := r.podman("inspect", "--format", "{{.State.ExitCode}}", r.id+"-bare").output(); err != nil || strings.TrimSpace(out) != "0" {
		t.Errorf("after a stop: exit code %s %v", out, err)
	}
	if logs := r.logs(t, "bare"); !strings.Contains(logs, "daemon.stopped") {
		t.Errorf("the record does not end with daemon.stopped:\n%s", logs)
	}
}
