package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces are those of a run.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// noProgram is executed if there is no command. That it does not exist shows only
// after the namespaces were made and mapped.
const noProgram = "/proc/self/no-such-program"

// attempt really makes the namespaces of a run. err says why that failed. The
// report is nil without a command.
func attempt(ctx context.Context, command []string) (*inside, error) {
	if len(command) == 0 {
		command = []string{noProgram}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  namespaces,
		Pdeathsig:   unix.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case command[0] == noProgram && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.As(err, &exit):
		return &inside{Error: strings.TrimSpace(string(exit.Stderr) + " " + err.Error())}, nil
	case err != nil:
		return nil, err
	}
	var in inside
	if err := json.Unmarshal(out, &in); err != nil {
		return &inside{Error: fmt.Sprintf("unreadable report: %v", err)}, nil
	}
	return &in, nil
}

// userNamespaces explains err, the result of the attempt.
func (m machine) userNamespaces(err error, binary string) Finding {
	f := Finding{Name: "user namespaces", OK: err == nil, Needed: true}
	if f.OK {
		f.Detail = "this user may make them"
		if os.Geteuid() == 0 {
			f.Detail = "root may make them; whether another user may is seen by asking as that user"
		}
		return f
	}
	f.Detail = fmt.Sprintf("can't be made (%v)", err)
	switch {
	case m.read("proc/sys/kernel/unprivileged_userns_clone") == "0":
		f.Detail += ": kernel.unprivileged_userns_clone is 0"
		f.Fix = persist("kernel.unprivileged_userns_clone=1")
	case m.noneAllowed() != "":
		f.Detail += ": " + m.noneAllowed() + " is 0"
		f.Fix = persist(m.noneAllowed() + "=15000")
	case m.read("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		f.Detail += ": AppArmor allows them only to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)"
		f.Fix = appArmorFix(binary)
	case !m.exists("proc/self/ns/user"):
		f.Detail += ": this kernel is built without CONFIG_USER_NS"
	default:
		m.explainContainer(&f)
	}
	return f
}

// noneAllowed reports the sysctl that allows none of a kind of namespace that a run
// takes; "": there is no such sysctl.
func (m machine) noneAllowed() string {
	for _, kind := range []string{"user", "net", "mnt", "pid", "ipc", "uts"} {
		if m.read("proc/sys/user/max_"+kind+"_namespaces") == "0" {
			return "user.max_" + kind + "_namespaces"
		}
	}
	return ""
}

func (m machine) explainContainer(f *Finding) {
	if _, ok := m.container(); !ok {
		return
	}
	f.Detail += ": container engines forbid them by their own system-call filter"
	f.Fix = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined …\n" +
		"podman run --security-opt seccomp=unconfined --security-opt unmask=ALL …\n" +
		"in Kubernetes: securityContext.seccompProfile.type: Unconfined, hostUsers: false"
}

// persist sets a sysctl now and at every start.
func persist(setting string) string {
	return "sudo sysctl -w " + setting + "\n" +
		"echo '" + setting + "' | sudo tee /etc/sysctl.d/90-egressd.conf"
}

// appArmorFix installs a profile that confines nothing and grants the one
// permission, for this binary alone.
func appArmorFix(binary string) string {
	if binary == "" {
		binary = "/usr/local/bin/launch"
	}
	return "sudo tee /etc/apparmor.d/egressd-launch >/dev/null <<'END'\n" +
		profile(binary) +
		"END\n" +
		"sudo apparmor_parser -r /etc/apparmor.d/egressd-launch"
}

// profile is the AppArmor profile that lets the launch binary at path make user
// namespaces on a machine that restricts them.
func profile(path string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path)
	return "abi <abi/4.0>,\n" +
		"include <tunables/global>\n\n" +
		"profile egressd-launch \"" + quoted + "\" flags=(unconfined) {\n" +
		"  userns,\n\n" +
		"  include if exists <local/egressd-launch>\n" +
		"}\n"
}
