//go:build system

package containers

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/test/e2e/job"
)

const (
	manifestFile = "../../deploy/kubernetes/egressd.yaml"
	policyMap    = "egressd-policy"
	policyText   = "allow:\n  - " + allowedHost + "\n"
)

// newPod prepares the manifest as shipped, with a policy and this run's images.
func newPod(t *testing.T) *kubelet { return podOf(t, manifestFile, "Deployment") }

func podOf(t *testing.T, manifest, kind string) *kubelet {
	t.Helper()
	r := need(t)
	k := newKubelet(t, r, r.newWorld(t), manifest, kind)
	k.images = map[string]string{"egressd:0.1.0": r.image, "docker.io/library/python:3-slim": r.base}
	k.configs[policyMap] = map[string]string{"policy.yaml": policyText}
	k.agent = func(c *container) {
		c.mounts = append(c.mounts, r.probe+":/probe:ro", k.w.caFile+":/ca.pem:ro")
	}
	return k
}

// curl is the agent's curl; plain takes its proxy variables away.
func (k *kubelet) curl(plain bool, args ...string) (stdout, stderr string, code int) {
	argv := []string{"curl", "-sS", "--max-time", "8", "--cacert", "/ca.pem"}
	if plain {
		argv = append([]string{"env", "-u", "HTTP_PROXY", "-u", "HTTPS_PROXY", "-u", "ALL_PROXY", "-u", "http_proxy", "-u", "https_proxy", "-u", "all_proxy"}, argv...)
	}
	return k.r.exec("agent", "", append(argv, args...)...)
}

// noStrays fails the test when something arrived outside that should not have.
func (k *kubelet) noStrays(t *testing.T) {
	t.Helper()
	if n := k.w.strays.Load(); n != 0 {
		t.Errorf("%d things reached the outside past the policy: %v", n, k.w.strayed())
	}
}

// TestPod runs the shipped manifest: what is allowed works for every client,
// what is not is refused in words, and both are recorded.
func TestPod(t *testing.T) {
	k := newPod(t)
	k.run(t)
	python := `import urllib.request, ssl
c = ssl.create_default_context(cafile="/ca.pem")
print(urllib.request.urlopen("https://` + allowedHost + `/", context=c, timeout=8).read().decode())`
	unproxied := []string{"env", "-u", "HTTPS_PROXY", "-u", "https_proxy", "-u", "ALL_PROXY", "-u", "all_proxy"}
	hello := "hello from " + allowedHost
	tests := []struct {
		name       string
		argv       []string
		code       int
		out, words string
	}{
		{"https by proxy", []string{"curl", "-sS", "--cacert", "/ca.pem", "https://" + allowedHost + "/"}, 0, hello, ""},
		{"http by proxy", []string{"curl", "-sS", "http://" + allowedHost + "/"}, 0, hello, ""},
		{"https captured", []string{"curl", "--noproxy", "*", "-sS", "--cacert", "/ca.pem", "https://" + allowedHost + "/"}, 0, hello, ""},
		{"http captured", []string{"curl", "--noproxy", "*", "-sS", "http://" + allowedHost + "/"}, 0, hello, ""},
		{"socks", []string{"curl", "-x", "socks5h://127.0.0.1:3128", "-sS", "--cacert", "/ca.pem", "https://" + allowedHost + "/"}, 0, hello, ""},
		{"python by proxy", []string{"python3", "-c", python}, 0, hello, ""},
		{"python captured", append(slices.Clone(unproxied), "python3", "-c", python), 0, hello, ""},
		{"resolver", []string{"getent", "ahostsv4", allowedHost}, 0, allowedHost, ""},

		{"http denied by proxy", []string{"curl", "-sS", "-w", "%{http_code}", "http://" + deniedHost + "/"}, 0, "To allow it", ""},
		{"https denied by proxy", []string{"curl", "-sS", "https://" + deniedHost + "/"}, 56, "", "403"},
		{"denied captured", []string{"curl", "--noproxy", "*", "-sS", "https://" + deniedHost + "/"}, 6, "", "Could not resolve host"},
		{"address captured", []string{"curl", "--noproxy", "*", "-sSk", "--max-time", "8", "https://" + canaryAddr + "/"}, 35, "", ""},
		{"name at another address", []string{"curl", "--noproxy", "*", "-sSk", "--max-time", "8", "--resolve", deniedHost + ":443:" + originAddr, "https://" + deniedHost + "/"}, 35, "", ""},
		{"resolver denied", []string{"getent", "ahostsv4", deniedHost}, 2, "", ""},
	}
	for _, tt := range tests {
		stdout, stderr, code := k.r.exec("agent", "", tt.argv...)
		if code != tt.code || !strings.Contains(stdout, tt.out) || !strings.Contains(stderr, tt.words) {
			t.Errorf("%s: exit code %d, want %d with %q %q:\n%s%s", tt.name, code, tt.code, tt.out, tt.words, stdout, stderr)
		}
	}
	k.noStrays(t)
	logs := k.r.logs(t, "egressd")
	for _, want := range []string{`"decision":"allowed"`, `"decision":"blocked"`, `"` + deniedHost + `"`, "host_not_listed"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the events do not tell %s", want)
		}
	}
	k.fromOutside(t)
}

// fromOutside connects to the pod as its neighbours would.
func (k *kubelet) fromOutside(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup // what is dropped takes its time
	for _, ip := range []string{podAddr, podAddr6} {
		for _, port := range []string{"3128", "3129", "3130"} {
			wg.Go(func() {
				if c, err := k.w.dial(net.JoinHostPort(ip, port)); err == nil {
					_ = c.Close()
					t.Errorf("a neighbour of the pod reaches %s port %s", ip, port)
				}
			})
		}
	}
	wg.Wait()
}

// A ConfigMap's new content is in force without a restart; what it denies ends,
// what it allows lives on.
func TestPodReload(t *testing.T) {
	k := newPod(t)
	k.run(t)
	if _, stderr, code := k.curl(true, "https://"+otherHost+"/"); code == 0 {
		t.Fatal("allowed before the change: ", stderr)
	}
	k.writeConfigMap(t, "egressd-policy", map[string]string{"policy.yaml": "allow:\n  - " + otherHost + "\n"})
	eventually(t, "the new policy is in force", readyTime, func() bool {
		_, _, code := k.curl(false, "https://"+otherHost+"/")
		return code == 0
	})
	if _, _, code := k.curl(false, "https://"+allowedHost+"/"); code == 0 {
		t.Error("what the new policy does not allow still passes")
	}
	k.writeConfigMap(t, "egressd-policy", map[string]string{"policy.yaml": "alow:\n  - " + allowedHost + "\n"})
	eventually(t, "the bad file is reported", readyTime, func() bool {
		return strings.Contains(k.r.logs(t, "egressd"), "alow")
	})
	if stdout, stderr, code := k.curl(false, "https://"+otherHost+"/"); code != 0 {
		t.Errorf("after a bad file the policy before it is not in force: %s%s", stdout, stderr)
	}
	k.writeConfigMap(t, "egressd-policy", map[string]string{"policy.yaml": policyText})
	eventually(t, "the repaired file is in force", readyTime, func() bool {
		_, _, code := k.curl(false, "https://"+allowedHost+"/")
		return code == 0
	})
	k.noStrays(t)
}

// When egressd is killed nothing leaks, and once it is back everything works.
func TestPodKilled(t *testing.T) {
	k := newPod(t)
	k.run(t)
	if stdout, stderr, code := k.curl(true, "https://"+allowedHost+"/"); code != 0 {
		t.Fatal(stdout, stderr)
	}
	// The agent tries without a pause, by every way, while egressd is killed, away and back.
	loop := `while :; do
  curl -sk --max-time 2 --noproxy '*' https://` + canaryAddr + `/ 
  curl -sk --max-time 2 --noproxy '*' --resolve ` + deniedHost + `:443:` + canaryAddr + ` https://` + deniedHost + `/
  curl -sk --max-time 2 https://` + deniedHost + `/
  getent hosts ` + deniedHost + `
done >/dev/null 2>&1`
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	trying := exec.CommandContext(ctx, "podman", "exec", k.r.id+"-agent", "sh", "-c", loop)
	trying.Env = append(os.Environ(), "CONTAINERS_CONF="+k.r.conf())
	if err := trying.Start(); err != nil {
		t.Fatal(err)
	}
	served := k.w.requests.Load()
	if err := k.r.podman("kill", "-s", "KILL", k.r.id+"-egressd").run(); err != nil {
		t.Fatal(err)
	}
	if err := k.r.podman("wait", k.r.id+"-egressd").run(); err != nil {
		t.Fatal(err)
	}
	for _, plain := range []bool{true, false} {
		if _, _, code := k.curl(plain, "https://"+allowedHost+"/"); code == 0 {
			t.Errorf("without egressd even what is allowed must fail (plain %v)", plain)
		}
	}
	k.attack(t, bypasses)
	if k.w.requests.Load() != served {
		t.Error("the origin was reached without egressd")
	}
	if err := k.r.podman("start", k.r.id+"-egressd").run(); err != nil {
		t.Fatal(err)
	}
	k.r.ready(t, "egressd")
	for _, plain := range []bool{true, false} {
		if stdout, stderr, code := k.curl(plain, "https://"+allowedHost+"/"); code != 0 {
			t.Errorf("not working again (plain %v): %s%s", plain, stdout, stderr)
		}
	}
	stop()
	_ = trying.Wait() // killed
	k.noStrays(t)
}

// Metrics and probes at a port of the pod: for the scraper, not for the agent.
func TestPodMetrics(t *testing.T) {
	k := podOf(t, rendered(t, "--skip-tests", "--set", "metrics.enabled=true"), "Deployment")
	k.run(t)
	if _, _, code := k.curl(false, "https://"+allowedHost+"/"); code != 0 {
		t.Error("an allowed request fails")
	}
	for _, url := range []string{"http://127.0.0.1:3131/metrics", "http://" + podAddr + ":3131/metrics", "http://[::1]:3131/healthz"} {
		for _, plain := range []bool{true, false} {
			if out, _, code := k.curl(plain, "--fail", url); code == 0 {
				t.Errorf("the agent reads %s (plain %v): %.80s", url, plain, out)
			}
		}
	}
	text, err := k.w.get("http://" + podAddr + ":3131/metrics")
	if err != nil || !strings.Contains(text, `door="connect",policy="default",reason="allowed",verdict="allowed"} 1`) {
		t.Errorf("the scraper outside sees no decision: %v\n%.2000s", err, text)
	}
	k.noStrays(t)
}

// rendered is a file with what the chart makes of some values.
func rendered(t *testing.T, args ...string) string {
	t.Helper()
	out, err := need(t).helm(append([]string{"template", "egressd", "../helm/egressd"}, args...)...)
	if err != nil {
		needModules(t, err.Error())
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), "rendered.yaml"), out)
}

// TestHelmTest runs the pod of `helm test`, and once more without the capture,
// which it has to notice.
func TestHelmTest(t *testing.T) {
	manifest := rendered(t, "--show-only", "templates/tests/verify.yaml")
	t.Run("captured", func(t *testing.T) {
		k := podOf(t, manifest, "Pod")
		k.run(t)
		if k.code != 0 {
			t.Errorf("exit code %d\n%s", k.code, k.ended)
		}
		k.noStrays(t)
	})
	t.Run("not captured", func(t *testing.T) {
		k := podOf(t, manifest, "Pod")
		k.pod.InitContainers = slices.DeleteFunc(k.pod.InitContainers, func(c k8sContainer) bool { return c.Name == "capture" })
		k.run(t)
		if k.code != 1 {
			t.Errorf("exit code %d, want 1\n%s", k.code, k.ended)
		}
	})
}

// Whatever the pod's resolv.conf says is captured, IPv6 and Docker's embedded
// server too; and answered, not only refused.
func TestPodResolvers(t *testing.T) {
	k := newPod(t)
	k.run(t)
	var jobs []job.Job
	for _, server := range []string{resolver, canaryAddr, "2620:fe::fe", "127.0.0.1", "127.0.0.11", "127.0.0.53", "::1", "169.254.20.10"} {
		for _, network := range []string{"", "tcp://"} {
			via := network + net.JoinHostPort(server, "53")
			jobs = append(jobs, job.Job{ID: via, Op: "door.dns", Host: allowedHost, QType: 1, Via: via})
		}
	}
	for id, res := range k.r.attempt(t, "agent", jobs) {
		if len(res.Answers) != 1 || !strings.HasPrefix(res.Answers[0], "198.18.") {
			t.Errorf("%s: %v %s, want an address of egressd's own", id, res.Answers, res.Err)
		}
	}
	k.noStrays(t)
}
