//go:build system

package containers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"egressd/test/e2e/job"
)

// launchOptions are what a container needs for launch to make a sandbox in it
// (docs/docker.md): a /proc without masks, from which the kernel lets a fresh
// one be made, and a seccomp profile that lets namespaces be made (Podman's
// does). No capability, no root.
var launchOptions = []string{"--security-opt", "unmask=ALL"}

// TestLaunchInContainer runs launch's image with the documented options,
// and without them.
func TestLaunchInContainer(t *testing.T) {
	r := need(t)
	w := r.newWorld(t)
	base := container{
		name: "launch", image: r.launchImage, network: "ns:" + w.inside, user: "10001:10001",
		capDrop: []string{"ALL"}, noNewPrivs: true, unconfined: true,
		mounts: []string{r.probe + ":/probe:ro", w.resolv + ":/etc/resolv.conf:ro"},
		args:   []string{"--allow", allowedHost, "--", "/probe", "run"},
	}
	jobs := append(slices.Clone(bypasses), job.Job{
		ID: "allowed", Op: "door.direct", Host: allowedHost, Port: 80, Payload: job.Payload{Kind: "http", Host: allowedHost, Path: "/"},
	})
	in, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	run := func(c container) (stdout, stderr string, code int) {
		cmd := r.podman(append([]string{"run", "--rm", "-i"}, c.flags(r)...)...)
		cmd.stdin = string(in)
		stdout, stderr, err := cmd.both()
		return stdout, stderr, exitCode(err)
	}

	// Without the options it says so, and runs nothing.
	stdout, stderr, code := run(base)
	if code != 125 || stdout != "" || !strings.Contains(stderr, "launch doctor") {
		t.Errorf("without the options: exit code %d, want 125 and advice\n%s%s", code, stdout, stderr)
	}

	c := base
	c.extra = launchOptions
	stdout, stderr, code = run(c)
	var results []job.Result
	if err := json.Unmarshal([]byte(stdout), &results); err != nil || code != 0 || len(results) != len(jobs) {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	for _, res := range results {
		switch {
		case res.ID == "allowed" && (res.Status != 200 || !strings.Contains(res.Text, "hello from "+allowedHost)):
			t.Errorf("what is allowed does not work: %+v", res)
		case res.ID != "allowed" && (res.Reached || len(res.Answers) > 0):
			t.Errorf("%s succeeded: %+v", res.ID, res)
		}
	}
	if n := w.strays.Load(); n != 0 {
		t.Errorf("%d things reached the outside past the policy: %v", n, w.strayed())
	}
}
