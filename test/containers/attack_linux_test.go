//go:build system

package containers

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"egressd/test/e2e/job"
)

// bypasses are ways to the outside past egressd. Run without the capture each
// reaches a canary: see TestBypassesWork.
var bypasses = []job.Job{
	{ID: "tcp", Op: "tcp", Via: net.JoinHostPort(canaryAddr, "4444"), Token: "x"},
	{ID: "tcp to a web port", Op: "tcp", Via: net.JoinHostPort(canaryAddr, "22"), Token: "x"},
	{ID: "tcp over IPv6", Op: "tcp", Via: net.JoinHostPort(canaryAddr6, "4444"), Token: "x"},
	{ID: "tcp fast open", Op: "tcp.fastopen", Via: net.JoinHostPort(canaryAddr, "4444"), Token: "x"},
	{ID: "mptcp", Op: "tcp.mptcp", Via: net.JoinHostPort(canaryAddr, "4444"), Token: "x"},
	{ID: "dns over tls port", Op: "tcp", Via: net.JoinHostPort(canaryAddr, "853"), Token: "x"},
	{ID: "udp", Op: "udp", Via: net.JoinHostPort(canaryAddr, "4444"), Token: "x"},
	{ID: "quic port", Op: "udp", Via: net.JoinHostPort(canaryAddr, "443"), Token: "x"},
	{ID: "ntp", Op: "udp", Via: net.JoinHostPort(canaryAddr, "123"), Token: "x"},
	{ID: "udp over IPv6", Op: "udp", Via: net.JoinHostPort(canaryAddr6, "4444"), Token: "x"},
	{ID: "ping", Op: "icmp.dgram", Via: canaryAddr, Token: "x"},
	{ID: "ping over IPv6", Op: "icmp.dgram", Via: canaryAddr6, Token: "x"},
	{ID: "dns question to another server", Op: "door.dns", Host: "leak.example.net", QType: 16, Via: net.JoinHostPort(canaryAddr, "53")},
	{ID: "dns question as data", Op: "door.dns", Host: "secret." + deniedHost, QType: 1, Via: net.JoinHostPort(resolver, "53")},
	{ID: "dns question over tcp", Op: "door.dns", Host: "tcp." + deniedHost, QType: 1, Via: "tcp://" + net.JoinHostPort(resolver, "53")},
	{ID: "the gateway itself", Op: "tcp", Via: net.JoinHostPort(gatewayAddr, "8080"), Token: "x"},
	{ID: "metadata", Op: "door.direct", Host: "169.254.169.254", Port: 80, Payload: job.Payload{Kind: "http", Host: "169.254.169.254", Path: "/"}},
}

// privileges are what an agent would need to undo its confinement.
var privileges = []job.Job{
	{ID: "flush the rules", Op: "netlink.nft"},
	{ID: "add an address", Op: "netlink.addr"},
	{ID: "delete the route", Op: "netlink.route"},
	{ID: "add a device", Op: "netlink.link"},
	{ID: "raw IP", Op: "raw.ip", Via: canaryAddr, Port: 253, Token: "x"},
	{ID: "raw ICMP", Op: "icmp.raw", Via: canaryAddr, Token: "x"},
	{ID: "packet socket", Op: "packet", Token: "x"},
	{ID: "mark packets", Op: "tcp.mark", Via: net.JoinHostPort(canaryAddr, "4444"), Token: "x"},
	{ID: "transparent socket", Op: "tcp.transparent", Via: net.JoinHostPort(canaryAddr, "4444"), Token: "x"},
	{ID: "vsock to the host", Op: "vsock", Token: "x"},
	{ID: "mount", Op: "mount.tmpfs"},
	{ID: "egressd's admin socket", Op: "unix", Via: "/run/egressd/admin.sock", Token: "GET /healthz HTTP/1.0\r\n\r\n"},
	{ID: "egressd's admin socket in the image's place", Op: "unix", Via: "/sockets/admin.sock", Token: "GET /healthz HTTP/1.0\r\n\r\n"},
	{ID: "egressd's policy", Op: "open.write", Via: "/etc/egressd/policy.yaml"},
}

// neighbours is what an agent does to egressd when it sees it as process 1.
var neighbours = []job.Job{
	{ID: "ptrace", Op: "ptrace", Port: 1},
	{ID: "read its memory", Op: "vm.read", Port: 1},
	{ID: "take its descriptors", Op: "pidfd.getfd", Port: 1},
	{ID: "memory file", Op: "proc.read", Via: "/proc/1/mem"},
	{ID: "environment", Op: "proc.read", Via: "/proc/1/environ"},
	{ID: "maps", Op: "proc.read", Via: "/proc/1/maps"},
	{ID: "descriptors", Op: "proc.read", Via: "/proc/1/fd"},
	{ID: "its files", Op: "proc.read", Via: "/proc/1/root/etc/egressd/policy.yaml"},
	{ID: "its socket", Op: "unix", Via: "/proc/1/root/run/egressd/admin.sock", Token: "GET /healthz HTTP/1.0\r\n\r\n"},
	{ID: "kill it", Op: "kill.pid", Port: 1},
	{ID: "enter its namespaces", Op: "setns.proc", Via: "/proc/1/ns/mnt"},
}

// attempt runs jobs in a container and reports what each came to.
func (r *rig) attempt(t *testing.T, name string, jobs []job.Job) map[string]job.Result {
	t.Helper()
	in, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := r.exec(name, string(in), "/probe", "run")
	var results []job.Result
	if err := json.Unmarshal([]byte(stdout), &results); err != nil || code != 0 || len(results) != len(jobs) {
		t.Fatalf("probe: exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	byID := map[string]job.Result{}
	for _, res := range results {
		byID[res.ID] = res
	}
	return byID
}

// attack runs jobs as the agent; none may reach anything.
func (k *kubelet) attack(t *testing.T, jobs []job.Job) {
	t.Helper()
	k.r.attack(t, jobs)
	k.noStrays(t)
}

func (r *rig) attack(t *testing.T, jobs []job.Job) {
	t.Helper()
	for id, res := range r.attempt(t, "agent", jobs) {
		// A door's answer is no success: its words for no are one.
		done := res.Done && !strings.Contains(id, "dns question")
		answered := len(res.Answers) > 0 || strings.Contains(res.Text, "HTTP/") // a name's address, an admin page
		if res.Reached || done || answered {
			t.Errorf("%s succeeded: %+v", id, res)
		}
		if strings.Contains(res.Err, "unknown attempt") {
			t.Errorf("%s: %s", id, res.Err)
		}
	}
}

// The list of bypasses is worth something only when each works without the
// capture.
func TestBypassesWork(t *testing.T) {
	r := need(t)
	w := r.newWorld(t)
	r.start(t, container{
		name: "open", image: r.base, network: "ns:" + w.inside, user: "10001:10001", capDrop: []string{"ALL"}, noNewPrivs: true,
		entrypoint: "sleep", args: []string{"600"}, mounts: []string{r.probe + ":/probe:ro", w.resolv + ":/etc/resolv.conf:ro"},
	})
	for id, res := range r.attempt(t, "open", bypasses) {
		if !res.Reached && !res.Done { // a DNS server's answer is Done
			t.Errorf("%s reaches nothing even without the capture: %+v", id, res)
		}
	}
	if n := w.strays.Load(); n < int64(len(bypasses))/2 {
		t.Errorf("the world saw only %d of them", n)
	}
}

// In the pod none of them works, and nothing that would undo the pod's rules.
func TestPodBypass(t *testing.T) {
	k := newPod(t)
	k.run(t)
	k.attack(t, bypasses)
	k.attack(t, privileges)
	for _, argv := range [][]string{
		{"/usr/sbin/nft", "list", "ruleset"},
		{"/usr/sbin/nft", "flush", "ruleset"},
		{"/usr/sbin/ip", "link", "set", "eth0", "down"},
		{"/usr/sbin/ip", "addr", "add", "10.77.0.9/24", "dev", "eth0"},
		{"sh", "-c", "cat /etc/egressd/policy.yaml"},
		{"sh", "-c", "ls /run/egressd"},
		{"sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"},
		{"setpriv", "--reuid", "65532", "--clear-groups", "true"},
		{"unshare", "-Ur", "/usr/sbin/nft", "flush", "ruleset"},
	} {
		stdout, stderr, code := k.r.exec("agent", "", argv...)
		if code == 0 || strings.Contains(stderr, "executable file not found") {
			t.Errorf("%v: exit code %d\n%s%s", argv, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := k.curl(true, "https://"+allowedHost+"/"); code != 0 {
		t.Errorf("after the attempts the pod does not work: %s%s", stdout, stderr)
	}
	k.noStrays(t)
}

// Even with a shared process namespace (shareProcessNamespace: true, which the
// chart does not set) egressd's memory, descriptors and files stay its own.
func TestPodSharedProcesses(t *testing.T) {
	r := need(t)
	k := newPod(t)
	plain := k.agent
	k.agent = func(c *container) {
		plain(c)
		c.extra = []string{"--pid", "container:" + r.id + "-egressd"}
	}
	k.run(t)
	// Pid 1 is egressd now.
	if stdout, _, _ := r.exec("agent", "", "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline"); !strings.Contains(stdout, "/egressd") {
		t.Fatalf("pid 1 is %q: the test looks at nothing", stdout)
	}
	k.attack(t, neighbours)
}
