//go:build linux

package kernel

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const asInside = "KERNEL_TEST_INSIDE"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == asInside {
		if err := Inside(os.Stdout, func() (Prepared, error) { return Prepared{NFT: true, IPv6: true}, nil }); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func byName(t *testing.T, findings []Finding, name string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no %q among %+v", name, findings)
	return Finding{}
}

func TestProbe(t *testing.T) {
	findings := Probe(t.Context(), Options{Binary: "/opt/launch", Inside: []string{"/proc/self/exe", asInside}})
	for _, f := range findings {
		t.Logf("%+v", f)
		if f.Detail == "" {
			t.Errorf("%s: no detail", f.Name)
		}
	}
	if f := byName(t, findings, "user namespaces"); !f.OK {
		t.Skip("user namespaces are forbidden here: " + f.Detail)
	}
	for name, ok := range map[string]bool{"capture": true, "IPv6": true, "record of refused packets": false, "dummy interface": false} {
		if f := byName(t, findings, name); f.OK != ok {
			t.Errorf("got %+v", f)
		}
	}
	byName(t, findings, "fresh /proc")
	byName(t, findings, "system-call filter")
}

// Typed by root on a machine, the inner half would capture that machine's network.
func TestInsideStaysInside(t *testing.T) {
	prepare := func() (Prepared, error) {
		t.Error("the namespaces of this process were touched")
		return Prepared{}, errors.New("stop")
	}
	if err := Inside(io.Discard, prepare); err == nil {
		t.Error("no error")
	}
}

func TestAttemptWithoutCommand(t *testing.T) {
	in, err := attempt(t.Context(), nil)
	if in != nil {
		t.Errorf("got a report: %+v", in)
	}
	if err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

// A command that fails or talks nonsense is not taken for a good machine.
func TestAttemptWithBadCommand(t *testing.T) {
	if _, err := attempt(t.Context(), nil); err != nil {
		t.Skip("user namespaces are forbidden here: " + err.Error())
	}
	for _, command := range [][]string{{"/bin/false"}, {"/bin/echo", "hello"}, {"/bin/true"}} {
		in, err := attempt(t.Context(), command)
		if err != nil || in == nil || in.Error == "" {
			t.Errorf("%v: got %+v, %v", command, in, err)
			continue
		}
		if f := capture(*in); f.OK || !f.Needed {
			t.Errorf("%v: got %+v", command, f)
		}
	}
}

// Less is reported as less, not as broken; broken is reported as broken.
func TestCapture(t *testing.T) {
	anyIP := inside{Prepared: Prepared{Notes: []string{"no nftables"}}}
	if f := capture(anyIP); f.OK || f.Needed || f.Detail != "no nftables" || f.Fix == "" {
		t.Errorf("got %+v", f)
	}
	if f := capture(inside{Error: "operation not permitted"}); f.OK || !f.Needed || !strings.Contains(f.Detail, "operation not permitted") {
		t.Errorf("got %+v", f)
	}
}

// tree makes a machine of files.
func tree(t *testing.T, files map[string]string) machine {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return machine{root: root}
}

func TestTracingExplained(t *testing.T) {
	const scope = "proc/sys/kernel/yama/ptrace_scope"
	for _, c := range []struct {
		files map[string]string
		fix   string
	}{
		{nil, ""},
		{map[string]string{scope: "0\n"}, ""},
		{map[string]string{scope: "1\n"}, ""},
		{map[string]string{scope: "2\n"}, "sudo sysctl -w kernel.yama.ptrace_scope=1"},
		{map[string]string{scope: "3\n"}, "/etc/sysctl.d"},
	} {
		f := tree(t, c.files).tracing()
		if f.OK != (c.fix == "") || !strings.Contains(f.Fix, c.fix) {
			t.Errorf("%v: %+v", c.files, f)
		}
	}
}

func TestUserNamespacesExplained(t *testing.T) {
	const userns = "proc/self/ns/user"
	for _, c := range []struct {
		name        string
		files       map[string]string
		detail, fix string
	}{
		{
			"Debian's old switch",
			map[string]string{userns: "", "proc/sys/kernel/unprivileged_userns_clone": "0\n"},
			"unprivileged_userns_clone is 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1",
		},
		{
			"none allowed",
			map[string]string{userns: "", "proc/sys/user/max_user_namespaces": "0\n"},
			"max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000",
		},
		{
			"no net namespaces",
			map[string]string{userns: "", ".dockerenv": "", "proc/sys/user/max_user_namespaces": "63000\n", "proc/sys/user/max_net_namespaces": "0\n"},
			"user.max_net_namespaces is 0", "sudo sysctl -w user.max_net_namespaces=15000",
		},
		{
			"Ubuntu 24.04",
			map[string]string{
				userns: "", "proc/sys/kernel/unprivileged_userns_clone": "1\n", "proc/sys/user/max_user_namespaces": "63000\n",
				"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
			},
			"AppArmor", "profile egressd-launch \"/opt/bin/launch\" flags=(unconfined) {\n  userns,",
		},
		{"Docker", map[string]string{userns: "", ".dockerenv": ""}, "system-call filter", "docker run --security-opt seccomp=unconfined"},
		{"podman", map[string]string{userns: "", "run/.containerenv": ""}, "system-call filter", "podman run"},
		{"not built in", nil, "CONFIG_USER_NS", ""},
		{"unknown", map[string]string{userns: ""}, "operation not permitted", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := tree(t, c.files).userNamespaces(syscall.EPERM, "/opt/bin/launch")
			if f.OK || !f.Needed || !strings.Contains(f.Detail, c.detail) || !strings.Contains(f.Fix, c.fix) || (c.fix == "") != (f.Fix == "") {
				t.Errorf("got %+v", f)
			}
		})
	}
	if f := (machine{root: t.TempDir()}).userNamespaces(nil, ""); !f.OK || f.Fix != "" {
		t.Errorf("when it works: %+v", f)
	}
}

func TestRelease(t *testing.T) {
	for version, ok := range map[string]bool{
		"6.8.0-45-generic": true, "5.15.153.1-microsoft-standard-WSL2": true, "4.4.0-19041-Microsoft": false,
	} {
		f := tree(t, map[string]string{"proc/sys/kernel/osrelease": version + "\n"}).release()
		if f.OK != ok || !strings.Contains(f.Detail, version) || (f.Fix == "") != ok {
			t.Errorf("%s: %+v", version, f)
		}
	}
}

func TestProcfs(t *testing.T) {
	const masked = `22 1 0:21 / /proc rw - proc proc rw
30 22 0:21 /asound /proc/asound ro - proc proc rw
31 22 0:99 / /proc/kcore rw - tmpfs tmpfs rw
32 22 0:98 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw
`
	m := tree(t, map[string]string{"proc/self/mountinfo": masked})
	f := m.procfs("operation not permitted")
	if f.OK || !strings.Contains(f.Detail, "/proc/asound, /proc/kcore)") || !strings.Contains(f.Fix, "systempaths=unconfined") {
		t.Errorf("got %+v", f)
	}
	if f := m.procfs(""); !f.OK || f.Fix != "" {
		t.Errorf("got %+v", f)
	}
}

func TestContainer(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"Docker":     {".dockerenv": ""},
		"podman":     {"run/.containerenv": ""},
		"Kubernetes": {".dockerenv": "", "var/run/secrets/kubernetes.io/token": ""},
		"LXC":        {"proc/1/cgroup": "0::/lxc/box"},
	} {
		if f, ok := tree(t, files).container(); !ok || !strings.Contains(f.Detail, name) {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if f, ok := tree(t, map[string]string{"proc/1/cgroup": "0::/init.scope"}).container(); ok {
		t.Errorf("bare metal: got %+v", f)
	}
}

// The profile that packages ship is the one that launch doctor prints.
func TestShippedProfile(t *testing.T) {
	shipped, err := os.ReadFile("../../../deploy/apparmor/egressd-launch")
	if err != nil {
		t.Fatal(err)
	}
	if got := profile("/usr/bin/launch"); got != string(shipped) {
		t.Errorf("deploy/apparmor/egressd-launch is to be\n%s", got)
	}
}

// A path that a shell or AppArmor would read as something else.
func TestProfileQuotes(t *testing.T) {
	if got := profile(`/home/a b/"x"/launch`); !strings.Contains(got, `"/home/a b/\"x\"/launch"`) {
		t.Errorf("got %s", got)
	}
}
