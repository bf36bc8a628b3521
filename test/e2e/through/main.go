// Through stands in for launch in the end-to-end tests: it starts an egressd
// whose policy is the flags of the run, and runs launch --egressd with the same
// flags. Both policies are asked, so every verdict must be the one that launch
// gives alone.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Where the two programs are; set by the linker.
var launch, egressd string

const (
	exitBadPolicy = 2 // egressd's
	exitBroken    = 99
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	runtime.LockOSThread() // the children die with this thread
	end := slices.Index(args, "--")
	if end < 0 {
		return child(exec.Command(launch, args...)) // a subcommand, or a misuse
	}
	flags := split(args[:end])
	if flags.alone {
		return child(exec.Command(launch, args...))
	}
	dir, err := os.MkdirTemp("", "through-")
	if err != nil {
		return broken(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the tests
	socket := filepath.Join(dir, "control.sock")
	daemon := exec.Command(egressd, append(flags.ceiling, "--listen", "none", "--control", "unix:"+socket, "--events", filepath.Join(dir, "events.jsonl"))...)
	if err := started(daemon); err != nil {
		if daemon.ProcessState != nil && daemon.ProcessState.ExitCode() == exitBadPolicy {
			return child(exec.Command(launch, args...)) // launch, too, has something to say about it
		}
		return broken(err)
	}
	defer func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // killed
	}()
	return child(exec.Command(launch, slices.Concat([]string{"--egressd", "unix:" + socket}, flags.session, args[end:])...))
}

func broken(err error) int {
	fmt.Fprintln(os.Stderr, "through:", err)
	return exitBroken
}

// started starts the daemon and returns when it is ready.
func started(daemon *exec.Cmd) error {
	log, err := daemon.StderrPipe()
	if err != nil {
		return err
	}
	dieWithUs(daemon)
	if err := daemon.Start(); err != nil {
		return err
	}
	var said strings.Builder
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "msg=ready") {
			go io.Copy(io.Discard, log) //nolint:errcheck // until it ends
			return nil
		}
		said.WriteString(lines.Text() + "\n")
	}
	_ = daemon.Wait() // it ended: its words say why
	return fmt.Errorf("egressd did not start:\n%s", said.String())
}

// child runs launch in our place and reports how it ended.
func child(c *exec.Cmd) int {
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	dieWithUs(c)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	if err := c.Start(); err != nil {
		return broken(err)
	}
	go func() {
		for s := range signals {
			_ = c.Process.Signal(s) // it may have ended
		}
	}()
	_ = c.Wait() // the code says it
	return c.ProcessState.ExitCode()
}

// halves is one command line as the ceiling's and the session's.
type halves struct {
	ceiling, session []string
	alone            bool // launch is meant without a daemon
}

func split(args []string) (h halves) {
	h.ceiling = []string{"--deny", "through.invalid"} // a daemon without a policy does not start
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		whole := args[i : i+1]
		takesValue := !slices.Contains([]string{"audit", "approve", "nested", "quiet", "no-summary"}, name)
		if takesValue && !has && i+1 < len(args) {
			whole = args[i : i+2]
			i++
			value = args[i]
		}
		switch name {
		case "isolation":
			h.alone = true
		case "allow", "deny", "preset", "policy", "host", "audit":
			h.ceiling, h.session = append(h.ceiling, whole...), append(h.session, whole...)
		case "dns-upstream":
			h.ceiling = append(h.ceiling, whole...)
		case "host-port":
			port := strings.TrimPrefix(value, "localhost:")
			h.ceiling = append(h.ceiling, "--allow", "raw:host.internal:"+port, "--host", "host.internal=127.0.0.1")
			h.session = append(h.session, whole...)
		default:
			h.session = append(h.session, whole...)
		}
	}
	return h
}
