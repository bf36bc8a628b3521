// Package contest starts the servers that benchmarks measure side by side, and reads what
// they cost: processor time and memory of a process and all that it has started.
//
//	c := &contest.Contestant{Name: "squid", Addr: "127.0.0.1:3128", Cmd: exec.Command(...)}
//	err := c.Start(dir)
//	defer c.Stop()
//	err = c.Listening(ctx)
//	before, err := c.CPU()
package contest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 20 * time.Second
	stopPatience  = 5 * time.Second
)

// Contestant is one server.
type Contestant struct {
	Name string
	Addr string    // of its port; "": there is no server
	Cmd  *exec.Cmd // nil: there is no process
	Log  string    // where it says what went wrong

	HTTPOnly bool // it forwards requests, and makes no tunnels
	OneShot  bool // it closes a connection after a request that it has forwarded
	NoPolicy bool // it refuses nothing
}

// Start starts the process in a group of its own, with its output in a file below dir.
func (c *Contestant) Start(dir string) error {
	if c.Cmd == nil {
		return nil
	}
	c.Log = filepath.Join(dir, c.Name+".log")
	f, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	c.Cmd.Stdout, c.Cmd.Stderr = f, f
	c.Cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent"}
	c.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c.Cmd.Start()
}

// Listening waits until Addr accepts TCP connections.
func (c *Contestant) Listening(ctx context.Context) error {
	if c.Cmd == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w\n%s", c.Name, ctx.Err(), c.Said())
		}
	}
}

// Said is what the process has written, for an error.
func (c *Contestant) Said() string {
	text, _ := os.ReadFile(c.Log) // what there is
	return string(text)
}

// Stop ends the process and all that it has started.
func (c *Contestant) Stop() {
	if c.Cmd == nil || c.Cmd.Process == nil {
		return
	}
	kill := time.AfterFunc(stopPatience, func() { _ = c.Cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.Cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
	_ = c.Cmd.Wait()
	_ = syscall.Kill(-c.Cmd.Process.Pid, syscall.SIGKILL) // what it may have left behind
}

// FreePort is a port of 127.0.0.1 that TCP and UDP have free.
func FreePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	pc, err := net.ListenPacket("udp", ln.Addr().String())
	if err != nil {
		return "", err
	}
	defer pc.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

// Egressd builds egressd from this tree, below dir.
func Egressd(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "egressd")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "egressd/cmd/egressd")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build egressd: %w: %s", err, text)
	}
	return out, nil
}

// Missing is one that cannot take part, and why. It is a row of output.
type Missing struct {
	What string `json:"what"` // "missing"
	Who  string `json:"who"`
	Why  string `json:"why"`
}

func (m *Missing) Error() string { return m.Who + " is missing: " + m.Why }

// Find looks for a program in dir, which may be "", in PATH, and where Debian has servers.
// Its error is a *Missing.
func Find(dir, name string) (string, error) {
	places := []string{name, "/usr/sbin/" + name}
	if dir != "" {
		places = append([]string{filepath.Join(dir, name)}, places...)
	}
	for _, p := range places {
		if found, err := exec.LookPath(p); err == nil {
			return found, nil
		}
	}
	return "", &Missing{What: "missing", Who: name, Why: "it is not installed; `go run ./bench/run` installs it"}
}

// Machine is the row that says what was measured on.
func Machine() map[string]any {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // "": it says nothing
	load, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(load), " ")
	model := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name"); ok {
			line, _, _ := strings.Cut(rest, "\n")
			model = strings.Trim(line, "\t :")
		}
	}
	return map[string]any{
		"what": "machine", "cpus": runtime.NumCPU(), "cpu": model, "kernel": strings.TrimSpace(string(kernel)),
		"go": runtime.Version(), "load": first, "date": time.Now().UTC().Format(time.DateOnly),
	}
}

// Median of what pick finds in all of xs, of which there is one at least.
func Median[T any](xs []T, pick func(T) float64) float64 {
	var all []float64
	for _, x := range xs {
		all = append(all, pick(x))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// family reports the processes of pid's process group, which Start has made.
func family(pid int) []int {
	var all []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		// Behind the name in brackets: state, parent, group.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 3 || fields[2] != strconv.Itoa(pid) {
			continue
		}
		if member, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			all = append(all, member)
		}
	}
	return all
}

// CPU reports the processor time that c has used, user and system.
func (c *Contestant) CPU() (total time.Duration, err error) {
	if c.Cmd == nil {
		return 0, nil
	}
	for _, pid := range family(c.Cmd.Process.Pid) {
		exact, err := c.threads(pid)
		if err != nil {
			return 0, err
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, fmt.Errorf("%s has ended: %s", c.Name, c.Said())
		}
		// Behind the name in brackets, from field 3 of proc_pid_stat(5) on. It has those of
		// threads that have ended, too, but in steps.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 13 {
			return 0, errors.New("/proc/PID/stat is too short")
		}
		var coarse time.Duration
		for _, ticks := range fields[11:13] {
			n, err := strconv.ParseInt(ticks, 10, 64)
			if err != nil {
				return 0, err
			}
			coarse += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100
		}
		total += max(exact, coarse)
	}
	return total, nil
}

// threads reports the processor time of the threads that pid has now.
func (c *Contestant) threads(pid int) (total time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("%s has ended: %s", c.Name, c.Said())
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
		total += time.Duration(ns)
	}
	return total, nil
}

// Memory reports the bytes that are resident for c: what processes share is counted once.
func (c *Contestant) Memory() (total int64, err error) {
	if c.Cmd == nil {
		return 0, errors.New("there is no process")
	}
	for _, pid := range family(c.Cmd.Process.Pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		for line := range bytes.Lines(text) {
			if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
				kib, err := strconv.ParseInt(string(f[1]), 10, 64)
				if err != nil {
					return 0, err
				}
				total += kib << 10
			}
		}
	}
	return total, nil
}
