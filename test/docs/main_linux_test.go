//go:build system

package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// programs are our binaries under test.
var programs = []string{"launch", "egressd"}

// env is what TestMain sets up; tests only read it.
var env struct {
	base  string // of this run, outside /tmp and /run, open to other users
	bin   string // with our programs in it
	self  string // this binary where worlds can see it
	given map[string]*string
	build func() error

	images *string // a directory of images to use as it is
}

// TestMain is also the entry of the processes that the tests start: this binary
// under another name.
func TestMain(m *testing.M) {
	if role := roles()[filepath.Base(os.Args[0])]; role != nil {
		os.Exit(role(os.Args[1:]))
	}
	env.given = map[string]*string{}
	for _, name := range programs {
		env.given[name] = flag.String(name, "", name+" binary to use (default: build it)")
	}
	env.images = flag.String("images", "", "directory of container images, kept from a run before (default: build them)")
	flag.Parse()
	os.Exit(runTests(m))
}

// roles are what this binary is under the name that it was started by.
func roles() map[string]func(args []string) int {
	return map[string]func([]string) int{
		worldRole: runWorld,
		initRole:  runInit,
		bareRole:  runBare,
		awaitRole: runAwait,
		buildRole: runBuild,
		"kubectl": runKubectl,
		"helm":    runHelm,
	}
}

func runTests(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	base, err := makeBase()
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		return 1
	}
	defer func() {
		// Podman mounts its storage over itself and leaves that.
		_ = unix.Unmount(filepath.Join(base, "images", "overlay"), unix.MNT_DETACH) // there may be none
		if err := os.RemoveAll(base); err != nil {
			fmt.Fprintln(os.Stderr, "docs:", err)
		}
	}()
	env.base, env.bin, env.self = base, filepath.Join(base, "bin"), filepath.Join(base, "docs.test")
	if err := copySelf(); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		return 1
	}
	env.build = sync.OnceValue(func() error { return buildPrograms(ctx) })
	return m.Run()
}

// makeBase makes this run's directory where launch does not hide it.
func makeBase() (string, error) {
	dir := "/var/lib" // root's home is closed to others
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = home
	}
	base, err := os.MkdirTemp(dir, "egressd-docs-")
	if err != nil {
		return "", err
	}
	return base, os.Chmod(base, 0o755)
}

// copySelf puts this binary where it is not hidden in a world.
func copySelf() error {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(env.self, data, 0o755)
}

// buildPrograms puts our binaries into env.bin.
func buildPrograms(ctx context.Context) error {
	if err := os.MkdirAll(env.bin, 0o755); err != nil {
		return err
	}
	for _, name := range programs {
		out := filepath.Join(env.bin, name)
		if given := *env.given[name]; given != "" {
			data, err := os.ReadFile(given)
			if err != nil {
				return err
			}
			if err := os.WriteFile(out, data, 0o755); err != nil {
				return err
			}
			continue
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "egressd/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, text)
		}
	}
	return nil
}
