//go:build system

package clients

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// options are flags of the test binary.
type options struct {
	launch  string
	inWorld bool
	bare    bool
	picture bool
}

// env is what TestMain sets up once; tests only read it.
var env struct {
	world  *world
	launch string
	// picture: TestPicture draws the README's anew.
	picture bool
	base    string // directory of this run, outside /tmp and /run, open to other users
}

func TestMain(m *testing.M) {
	var o options
	flag.StringVar(&o.launch, "launch", "", "launch binary to test (default: build it)")
	flag.BoolVar(&o.inWorld, "in-world", false, "internal: this process is in the tests' own network namespace")
	flag.BoolVar(&o.bare, "bare", false, "internal: drop ambient capabilities and execute the arguments")
	flag.BoolVar(&o.picture, "picture", false, "write the README's picture anew: TestPicture")
	flag.Parse()
	switch {
	case o.bare:
		fmt.Fprintln(os.Stderr, "clients:", execBare(flag.Args()))
		os.Exit(1)
	case o.inWorld:
		os.Exit(runInWorld(m, o))
	}
	os.Exit(enterWorld(o))
}

// execBare becomes argv without the capabilities that the tests' namespace
// needed: a person who runs launch has none.
func execBare(argv []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(argv[0], argv, os.Environ())
}

// enterWorld starts this test binary again in a network namespace of its own
// and reports its exit code.
func enterWorld(o options) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	base, err := makeBase()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		return 1
	}
	defer os.RemoveAll(base)
	if o.launch == "" {
		if o.launch, err = buildLaunch(ctx, base); err != nil {
			fmt.Fprintln(os.Stderr, "clients:", err)
			return 1
		}
	}
	path := os.Getenv("PATH")
	if extra := installAgents(ctx, base); extra != "" {
		path += ":" + extra
	}
	args := append([]string{"-in-world", "-launch=" + o.launch}, os.Args[1:]...)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "EGRESSD_CLIENTS_BASE="+base, "PATH="+path)
	cmd.SysProcAttr = worldAttr()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EACCES):
		fmt.Printf("skipped: this machine gives uid %d no network namespace of its own: %v\n", os.Geteuid(), err)
		return 0
	}
	fmt.Fprintln(os.Stderr, "clients:", err)
	return 1
}

// worldAttr asks for the namespace: root makes it directly, a person by way of
// a user namespace.
func worldAttr() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// makeBase makes this run's directory where the sandbox does not hide it.
func makeBase() (string, error) {
	dir := "/var/lib" // root's home is closed to the throw-away user
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = home
	}
	base, err := os.MkdirTemp(dir, "egressd-clients-")
	if err != nil {
		return "", err
	}
	return base, os.Chmod(base, 0o755)
}

func buildLaunch(ctx context.Context, base string) (string, error) {
	out := filepath.Join(base, "launch")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "egressd/cmd/launch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build launch: %w\n%s", err, text)
	}
	return out, os.Chmod(out, 0o755)
}

// installAgents fetches the coding agents from npm and reports the directory of
// their commands, "" if they cannot be had: their tests then look along PATH,
// and skip.
func installAgents(ctx context.Context, base string) string {
	dir := filepath.Join(base, "agents")
	for range 3 { // npm now and then waits for ever for an answer that it has lost
		if out, err := install(ctx, dir); err != nil {
			fmt.Printf("the agents could not be installed: %v\n%.1000s\n", err, out)
			continue
		}
		return filepath.Join(dir, "node_modules", ".bin")
	}
	fmt.Println("the agents' tests skip")
	return ""
}

// installTime is several times what npm takes for them.
const installTime = 3 * time.Minute

func install(ctx context.Context, dir string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", dir,
		"@anthropic-ai/claude-code", "@openai/codex")
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// runInWorld builds the world around this process and runs the tests in it.
func runInWorld(m *testing.M, o options) int {
	env.launch, env.picture, env.base = o.launch, o.picture, os.Getenv("EGRESSD_CLIENTS_BASE")
	w, err := newWorld(env.base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients: build the world:", err)
		return 1
	}
	env.world = w
	code := m.Run()
	w.close()
	return code
}
