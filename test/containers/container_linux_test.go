//go:build system

package containers

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// container is what the manifests, the compose file and the tests ask Podman
// for.
type container struct {
	name       string // within the test; Podman's has the run's id in front
	image      string
	network    string // ns:PATH, container:NAME
	user       string
	entrypoint string // "": the image's
	args       []string
	env        []string
	mounts     []string // HOST:INSIDE[:ro]
	tmpfs      []string
	capAdd     []string
	capDrop    []string
	readOnly   bool
	noNewPrivs bool
	unconfined bool     // without our seccomp profile
	extra      []string // further flags of podman run
}

func (c container) flags(r *rig) []string {
	f := []string{"--pull", "never", "--no-healthcheck", "--label", r.id, "--name", r.id + "-" + c.name, "--network", c.network}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				f = append(f, flag, v)
			}
		}
	}
	add("--user", c.user)
	add("--entrypoint", c.entrypoint)
	add("--env", c.env...)
	add("--volume", c.mounts...)
	add("--tmpfs", c.tmpfs...)
	add("--cap-add", c.capAdd...)
	add("--cap-drop", c.capDrop...)
	if c.readOnly {
		f = append(f, "--read-only") // with what the engine adds to it by default
	}
	if c.noNewPrivs {
		f = append(f, "--security-opt", "no-new-privileges")
	}
	if !c.unconfined {
		f = append(f, "--security-opt", "seccomp="+r.seccomp)
	}
	return append(append(append(f, c.extra...), c.image), c.args...)
}

// run is the container to its end.
func (r *rig) run(c container) (stdout, stderr string, code int) {
	cmd := r.podman(append([]string{"run", "--rm"}, c.flags(r)...)...)
	cmd.limit = stepTime
	stdout, stderr, err := cmd.both()
	return stdout, stderr, exitCode(err)
}

// start runs the container until the test ends.
func (r *rig) start(t *testing.T, c container) {
	t.Helper()
	if err := r.podman(append([]string{"run", "-d"}, c.flags(r)...)...).run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			out, stderr, _ := r.podman("logs", "--tail", "60", r.id+"-"+c.name).both()
			t.Logf("logs of %s:\n%s%s", c.name, out, stderr)
		}
		if err := r.podman("rm", "-f", "-t", "0", r.id+"-"+c.name).run(); err != nil {
			t.Error(err)
		}
	})
}

// exec runs a program in a container that runs.
func (r *rig) exec(name, stdin string, argv ...string) (stdout, stderr string, code int) {
	c := r.podman(append([]string{"exec", "-i", r.id + "-" + name}, argv...)...)
	c.stdin, c.limit = stdin, stepTime
	stdout, stderr, err := c.both()
	return stdout, stderr, exitCode(err)
}

// logs is what a container wrote.
func (r *rig) logs(t *testing.T, name string) string {
	t.Helper()
	out, stderr, err := r.podman("logs", r.id+"-"+name).both()
	if err != nil {
		t.Fatal(err, stderr)
	}
	return out + stderr
}

// eventually asks until ok says yes: Podman tells nobody when something inside
// a container is ready.
func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", limit, what)
		case <-tick.C:
		}
	}
}

// ready waits for egressd in the container to say that it is.
func (r *rig) ready(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" is ready", readyTime, func() bool {
		_, _, code := r.exec(name, "", "/egressd", "healthcheck")
		return code == 0
	})
}

// write makes a file for a container to mount.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.TrimLeft(text, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
