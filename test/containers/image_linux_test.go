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

// maxImageBytes is what the image may take, unpacked.
const maxImageBytes = 25_000_000

// The image holds two programs, CA roots and an empty policy, and runs them as
// nobody in particular.
func TestImage(t *testing.T) {
	r := need(t)
	out, err := r.podman("image", "inspect", r.image).output()
	if err != nil {
		t.Fatal(err)
	}
	var images []struct {
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
	if err := json.Unmarshal([]byte(out), &images); err != nil || len(images) != 1 {
		t.Fatal(err, out)
	}
	image := images[0]
	c := image.Config
	t.Logf("the image takes %.1f MB", float64(image.Size)/1e6)
	if image.Size >= maxImageBytes {
		t.Errorf("the image takes %d bytes, at most %d", image.Size, maxImageBytes)
	}
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/egressd"}) || len(c.Cmd) != 0 || c.StopSignal != "SIGTERM" && c.StopSignal != "15" {
		t.Errorf("user %q, entrypoint %v %v, stop signal %q", c.User, c.Entrypoint, c.Cmd, c.StopSignal)
	}
	if image.HealthCheck == nil || !slices.Equal(image.HealthCheck.Test, []string{"CMD", "/egressd", "healthcheck"}) {
		t.Errorf("health check %+v", image.HealthCheck)
	}
	for _, want := range []string{"EGRESSD_POLICY=/etc/egressd/policy.yaml", "EGRESSD_ADMIN=unix:/run/egressd/admin.sock"} {
		if !slices.Contains(c.Env, want) {
			t.Errorf("%s is not in %v", want, c.Env)
		}
	}
	for _, label := range []string{"title", "description", "licenses", "version", "revision"} {
		if c.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("label %s is missing", label)
		}
	}
	r.checkFiles(t)
}

// checkFiles compares what is in the image with what should be.
func (r *rig) checkFiles(t *testing.T) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "root.tar")
	id, err := r.podman("create", "--pull", "never", "--label", r.id, r.image).output()
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
	type file struct {
		mode int64
		uid  int
	}
	want := map[string]file{
		"egressd": {0o755, 0}, "launch": {0o755, 0}, "etc/egressd/policy.yaml": {0o644, 0}, "etc/ssl/certs/ca-certificates.crt": {0o644, 0},
		"run/egressd": {0o1777, 65532}, "etc": {0o755, 0}, "etc/egressd": {0o755, 0}, "etc/ssl": {0o755, 0}, "etc/ssl/certs": {0o755, 0}, "run": {0o755, 0},
	}
	// Mount points that the runtime makes.
	runtime := []string{"dev", "proc", "sys", "tmp", "run/.containerenv", "etc/hosts", "etc/resolv.conf", "etc/hostname", "etc/mtab", "var", "var/tmp", "run/secrets"}
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
		tmpfs: []string{"/run/egressd:size=1m,mode=1777"},
	}
	for _, tt := range []struct {
		name, entrypoint string
		args             []string
		code             int
		out              string
	}{
		{"version", "", []string{"version"}, 0, "egressd " + testTarget},
		{"help", "", []string{"help"}, 0, "--policy"},
		{"check", "", []string{"check", "/etc/egressd/policy.yaml"}, 0, ""},
		{"launch version", "/launch", []string{"version"}, 0, testTarget},
		{"misuse", "", []string{"--no-such-flag"}, 2, "no-such-flag"},
		{"no policy", "", []string{"--policy", "/nowhere.yaml"}, 2, "/nowhere.yaml"},
	} {
		c := base
		c.name, c.entrypoint, c.args = strings.ReplaceAll(tt.name, " ", "-"), tt.entrypoint, tt.args
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
