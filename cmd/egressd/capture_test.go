//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"egressd/internal/cli"
	"egressd/netns"
	"egressd/test/iproute"
)

// emptyRoom is a namespace with nothing but lo, not even up, as a container
// without a network has it.
func emptyRoom(t *testing.T) room {
	t.Helper()
	ns := must(netns.New())(t)
	t.Cleanup(func() { ns.Close() })
	sleeper := exec.Command("sleep", "600")
	check(t, ns.Do(sleeper.Start))
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	return room{ns, fmt.Sprintf("/proc/%d/ns/net", sleeper.Process.Pid)}
}

// command runs egressd to its end.
func runEgressd(args ...string) (out string, code int) {
	cmd := exec.Command("egressd", args...)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err.Error(), -1
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// verifyIn runs egressd verify in the room as an agent without capabilities,
// and reports what failed.
func verifyIn(t *testing.T, r room, args ...string) (failed []string, code int) {
	t.Helper()
	var out []byte
	cmd := exec.Command("setpriv", append([]string{"--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "egressd", "verify"}, args...)...)
	check(t, r.Do(func() error {
		var err error
		out, err = cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil
		}
		return err
	}))
	for line := range strings.Lines(string(out)) {
		// No system-call filter is in the way of this suite, as a container's would be.
		if strings.HasPrefix(line, "FAIL") && !strings.Contains(line, "AF_VSOCK") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	if len(out) < 500 {
		t.Errorf("verify says only %q", out)
	}
	return failed, cmd.ProcessState.ExitCode()
}

// An isolated namespace, captured and served from outside: the agent's own
// attempts all end as they should, and none of egressd's surfaces is in reach.
func TestCaptureIsolated(t *testing.T) {
	if !asRoot(t) {
		return
	}
	r := emptyRoom(t)
	if out, code := runEgressd("capture", "--netns", r.path, "--protect-port", "3131"); code != cli.ExitOK || !strings.Contains(out, "no network of its own") {
		t.Fatalf("capture: %d\n%s", code, out)
	}
	if out, code := runEgressd("capture", "--netns", r.path, "--protect-port", "3131"); code != cli.ExitOK || !strings.Contains(out, "already") {
		t.Errorf("capture again: %d\n%s", code, out)
	}
	port := echo(t)
	p := start(t, "--netns", r.path, "--listen", "127.0.0.1:3128", "--transparent", ":3129", "--dns", ":3130",
		"--admin", "127.0.0.1:0", "--policy", write(t, "p.yaml", policyFor("a.test", port)))
	if failed, _ := verifyIn(t, r); len(failed) > 0 {
		t.Errorf("verify:\n%s", strings.Join(failed, "\n"))
	}
	check(t, r.Do(func() error {
		if err := once("127.0.0.1:3128", "a.test:"+port); err != nil {
			t.Errorf("by the proxy: %v", err)
		}
		code, addrs := resolve(t, "", "udp", "9.9.9.9:53", "a.test")
		if len(addrs) != 1 {
			t.Fatalf("DNS: %v %v", code, addrs)
		}
		return plainOnce(addrs[0].String() + ":" + port)
	}))
	p.signal(syscall.SIGKILL)
	p.exit(patience)
	failed, code := verifyIn(t, r)
	if code != cli.ExitNo || !slices.ContainsFunc(failed, regexp.MustCompile(`denied by the proxy.*connection refused`).MatchString) || len(failed) > 1 {
		t.Errorf("without the daemon: %d, %q", code, failed)
	}
	if out, code := runEgressd("capture", "--netns", r.path, "--remove"); code != cli.ExitOK {
		t.Errorf("remove: %d\n%s", code, out)
	}
}

// Verify finds a way out where there is one: in a namespace with a network and
// without the rules. With the rules the same attempts fail.
func TestVerifyFinds(t *testing.T) {
	if !asRoot(t) {
		return
	}
	in, out := emptyRoom(t), emptyRoom(t)
	check(t, in.Do(func() error {
		return errors.Join(iproute.Up("lo"), iproute.AddVeth("eth0", "eth0", out.path),
			iproute.AddAddr("eth0", "198.51.100.2/24"), iproute.Up("eth0"))
	}))
	check(t, out.Do(func() error {
		return errors.Join(iproute.Up("lo"), iproute.AddAddr("eth0", "198.51.100.1/24"), iproute.Up("eth0"),
			iproute.Route{To: iproute.All4, Dev: "lo", Local: true}.Add())
	}))
	check(t, in.Do(func() error { return iproute.DefaultVia("198.51.100.1") }))
	failed, code := verifyIn(t, in, "--proxy", "none", "--timeout", "300ms")
	all := strings.Join(failed, "\n")
	for _, want := range []string{
		"TCP to 1.1.1.1:22: ", "by somebody outside", // which of them were answered in time is the machine's load
		"UDP to 192.0.2.53:4444: ", "UDP to everybody", "DNS by UDP at 8.8.8.8:53: ", "UDP to a loopback address by eth0",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not found: %s", want)
		}
	}
	if code != cli.ExitNo || t.Failed() {
		t.Errorf("exit code %d\n%s", code, all)
	}
	if text, code := runEgressd("capture", "--netns", in.path); code != cli.ExitOK || strings.Contains(text, "no network") {
		t.Fatalf("capture: %d\n%s", code, text)
	}
	if failed, _ := verifyIn(t, in, "--proxy", "none"); len(failed) > 0 {
		t.Errorf("captured:\n%s", strings.Join(failed, "\n"))
	}
}
