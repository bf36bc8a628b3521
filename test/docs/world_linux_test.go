//go:build system

package docs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	worldRole = "egressd-docs-world"
	initRole  = "egressd-docs-init"
	bareRole  = "egressd-docs-bare"
	awaitRole = "egressd-docs-await"
	buildRole = "egressd-docs-build"

	// How the first process of a world is started.
	plainWorld = ""
)

// worldAttr asks for the namespaces of a world. Root makes them directly; a
// person by way of a user namespace, in which what building the world needs is
// ambient until the shell starts.
func worldAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}
	}
	return attr
}

// runWorld is the process that owns a world: it builds it, runs a shell in it
// until that ends, and reports the shell's exit code. args are the world's
// directory, the pages' checkout and how its first process is to be started.
func runWorld(args []string) int {
	dir, checkout, first := args[0], args[1], args[2]
	o, err := newOrigins()
	if err == nil {
		err = errors.Join(furnish(dir, checkout, o.caPEM), bringUp())
	}
	if err == nil {
		err = o.listen()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the world:", err)
		return 1
	}
	defer o.close()
	if err := runFirst(first, dir, filepath.Join(dir, "work")); err != nil {
		fmt.Fprintln(os.Stderr, "the world's first process:", err)
		return 1
	}
	return 0
}

// runFirst starts the world's first process and waits for the shell to end.
func runFirst(first, dir, work string) error {
	cmd := exec.Command(filepath.Join(dir, "bin", initRole), first, dir, work)
	cmd.Env = append(os.Environ(), "EGRESSD_DOCS_WORLD="+strconv.Itoa(os.Getpid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	runtime.LockOSThread() // Pdeathsig is tied to the thread that forked
	defer runtime.UnlockOSThread()
	if first == plainWorld {
		withTerminal(cmd)
		return cmd.Run()
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer dropCgroups(os.Getpid())
	defer func() {
		_ = cmd.Process.Kill() // everything in it goes with it
		_ = cmd.Wait()         // it was killed
	}()
	shell, err := enterSystemd(cmd.Process.Pid, dir, work)
	if err != nil {
		return err
	}
	withTerminal(shell)
	return shell.Run()
}

// withTerminal gives cmd what the test types into and reads from.
func withTerminal(cmd *exec.Cmd) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "status")}
}

// bringUp makes every address local: whatever is dialled is the world's own.
func bringUp() error {
	for _, args := range []string{"link set lo up", "route add local default dev lo", "-6 route add local default dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}

// systemBundle is where Debian keeps the CAs that programs trust.
const systemBundle = "/etc/ssl/certs/ca-certificates.crt"

// overlaid are directories that pages write to: writes stay in the world.
var overlaid = []string{"/etc", "/usr/local", "/var/log", "/var/cache", "/var/lib/logrotate"}

// emptied are directories that the world has for itself.
var emptied = map[string]string{"/run": "mode=755", "/tmp": "mode=1777", "/var/tmp": "mode=1777"}

// furnish seals the world off: nothing outside of its own directory can be
// written, /run and /tmp are its own, and so is what is written to what pages
// change. It puts the world's CA and DNS server where programs look for them.
func furnish(dir, checkout, caPEM string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil { // its own mount: it stays writable
		return fmt.Errorf("bind the world's directory: %w", err)
	}
	state, work := filepath.Join(dir, "state"), filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(state, 0o755), os.Mkdir(work, 0o755), unix.Mount("world", state, "tmpfs", 0, "mode=755")); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	layers := map[string]string{work: checkout}
	writable := []string{dir, state, work, "/dev/shm"}
	if os.Geteuid() == 0 { // a person cannot write there anyway
		for _, d := range overlaid {
			if _, err := os.Stat(d); err == nil {
				layers[d] = d
				writable = append(writable, d)
			}
		}
		for _, d := range []string{os.Getenv("GOCACHE"), storeDir(dir)} {
			if err := unix.Mount(d, d, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("bind %s: %w", d, err)
			}
			writable = append(writable, d)
		}
		writable = append(writable, cgroupRoots()...)
	}
	n := 0
	for at, lower := range layers {
		n++
		if err := layOver(at, lower, filepath.Join(state, fmt.Sprint(n))); err != nil {
			return err
		}
	}
	bundle, err := os.ReadFile(systemBundle)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"/etc/resolv.conf": "nameserver " + dnsAddress + "\n",
		"/etc/hosts":       "127.0.0.1 localhost\n::1 localhost\n",
		systemBundle:       string(bundle) + "\n" + caPEM,
	} {
		if err := replace(name, text, state); err != nil {
			return err
		}
	}
	for d, mode := range emptied {
		if err := unix.Mount("world", d, "tmpfs", 0, mode); err != nil {
			return fmt.Errorf("mount %s: %w", d, err)
		}
		writable = append(writable, d)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return seal(writable)
}

// seal makes every mount read-only but these.
func seal(writable []string) error {
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, readOnly); err != nil {
		return fmt.Errorf("make everything read-only: %w", err)
	}
	again := &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	for _, d := range writable {
		if err := unix.MountSetattr(unix.AT_FDCWD, d, 0, again); err != nil {
			return fmt.Errorf("make %s writable again: %w", d, err)
		}
	}
	return nil
}

// storeDir is where a world's containers are kept.
func storeDir(dir string) string { return filepath.Join(dir, "containers") }

// layOver makes what lower holds visible at a directory, with writes going to
// state.
func layOver(at, lower, state string) error {
	up, work := state+"-upper", state+"-work"
	if err := errors.Join(os.Mkdir(up, 0o755), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	opts := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, up, work)
	if os.Geteuid() != 0 {
		opts += ",userxattr"
	}
	if err := unix.Mount("world", at, "overlay", 0, opts); err != nil {
		return fmt.Errorf("lay over %s: %w", at, err)
	}
	return nil
}

// replace mounts a file with this text over one that may belong to somebody
// else.
func replace(name, text, state string) error {
	file := filepath.Join(state, filepath.Base(name))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(file, name, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount a file over %s: %w", name, err)
	}
	return nil
}
