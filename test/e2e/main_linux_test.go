package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Flags of the test binary. Empty paths: build from this tree.
type options struct {
	launch, probe string
	egressd       string
	storm         time.Duration
	inWorld       bool
	through       bool
}

// env is what TestMain sets up once; tests only read it.
var env struct {
	world  *world
	launch string
	probe  string
	daemon string // egressd
	base   string // directory of this run, outside /tmp and /run, open to the throw-away uid
	skip   string // why there is no world

	storm   time.Duration
	through bool // launch is one that hands everything to a daemon
}

func TestMain(m *testing.M) {
	var o options
	flag.StringVar(&o.launch, "launch", "", "launch binary to test (default: build it)")
	flag.StringVar(&o.probe, "probe", "", "probe binary (default: build it)")
	flag.StringVar(&o.egressd, "egressd", "", "egressd binary (default: build it)")
	flag.DurationVar(&o.storm, "storm", 3*time.Second, "how long the daemon's tests under load go on, each")
	flag.BoolVar(&o.inWorld, "in-world", false, "internal: this process is in the tests' own network namespace")
	flag.BoolVar(&o.through, "through", false, "internal: launch is test/e2e/through")
	flag.Parse()
	if !o.inWorld {
		os.Exit(enterWorld(o))
	}
	os.Exit(runInWorld(m, o))
}

// enterWorld starts this test binary again in a network namespace of its own
// and reports its exit code.
func enterWorld(o options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	base, err := makeBase()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(base)
	for _, b := range []struct {
		path *string
		pkg  string
	}{{&o.launch, "egressd/cmd/launch"}, {&o.probe, "egressd/test/e2e/probe"}, {&o.egressd, "egressd/cmd/egressd"}} {
		if *b.path, err = placed(ctx, base, *b.path, b.pkg); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
	}
	// The last of a flag counts.
	args := append(os.Args[1:len(os.Args):len(os.Args)], "-in-world", "-launch="+o.launch, "-probe="+o.probe, "-egressd="+o.egressd)
	return runShards(ctx, base, args)
}

func who() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return fmt.Sprintf("uid %d", os.Geteuid())
}

// worldAttr asks for the namespace: root makes it directly, a person by way of
// a user namespace, in which the capabilities that building the world needs
// are ambient (bare drops them again before launch).
func worldAttr() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// makeBase makes this run's directory where the sandbox does not hide it.
func makeBase() (string, error) {
	var errs []error
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/var/lib"
	}
	candidates := []string{home, "/var/lib"}
	if os.Geteuid() == 0 {
		candidates = []string{"/var/lib", "/srv"} // root's home is closed to the throw-away uid
	}
	for _, dir := range candidates {
		base, err := os.MkdirTemp(dir, "e2e-")
		if err == nil {
			return base, os.Chmod(base, 0o755)
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// placed puts the program into base, where the sandbox does not hide it: the
// one at given, or one built from this tree.
func placed(ctx context.Context, base, given, pkg string) (string, error) {
	out := filepath.Join(base, filepath.Base(pkg))
	if given != "" {
		data, err := os.ReadFile(given)
		if err != nil {
			return "", err
		}
		return out, os.WriteFile(out, data, 0o755)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", out, pkg) // no -trimpath: the packages are those of the tests, compiled already
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return out, os.Chmod(out, 0o755)
}

// runInWorld builds the world around this process and runs the tests in it.
func runInWorld(m *testing.M, o options) int {
	env.through, env.storm = o.through, o.storm
	env.launch, env.probe, env.daemon, env.base = o.launch, o.probe, o.egressd, os.Getenv("EGRESSD_E2E_BASE")
	w, err := newWorld(env.base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: build the world:", err)
		return 1
	}
	env.world = w
	code := m.Run()
	if err := w.close(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	return code
}
