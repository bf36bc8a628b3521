package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	startPatience = 20 * time.Second
	stopPatience  = 5 * time.Second
)

// contestant is one way to the origin.
type contestant struct {
	name string
	addr string    // of its proxy port; "": there is no proxy
	cmd  *exec.Cmd // nil: there is no proxy
	log  string    // where it says what went wrong
}

// launch starts cmd and waits until addr accepts.
func (c *contestant) launch(ctx context.Context, dir string) error {
	c.log = filepath.Join(dir, c.name+".log")
	f, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	c.cmd.Stdout, c.cmd.Stderr = f, f
	c.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			text, _ := os.ReadFile(c.log) // for the error alone
			return fmt.Errorf("%s does not listen: %w\n%s", c.name, ctx.Err(), text)
		}
	}
}

// stop ends the program and all that it has started.
func (c *contestant) stop() {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	kill := time.AfterFunc(stopPatience, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
	_ = c.cmd.Wait()
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // what it may have left behind
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

func build(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "egressd")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "egressd/cmd/egressd")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build egressd: %w: %s", err, text)
	}
	return out, nil
}

// egressd is the daemon with the rules that the origin needs; each decision
// goes to a file.
func egressd(name, binary, dir string, o *origin) (*contestant, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args := []string{"--listen", addr, "--events", filepath.Join(dir, name+".jsonl")}
	for _, ln := range []net.Listener{o.answers, o.source, o.http} {
		args = append(args, "--allow", ln.Addr().String())
	}
	return &contestant{name: name, addr: addr, cmd: exec.Command(binary, args...)}, nil
}

// squid is Debian's squid as a plain proxy that caches nothing; each request
// goes to its access log.
func squid(dir string, workers int) (*contestant, error) {
	binary, err := exec.LookPath("squid")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/squid"); err != nil {
			return nil, errors.New("there is no squid (Debian's package squid); -without squid goes without")
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	name := "squid"
	args := []string{"-N"}
	if workers > 1 {
		name += "-" + strconv.Itoa(workers)
		args = []string{"--foreground"}
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	home := filepath.Join(dir, name)
	if err := os.Mkdir(home, 0o777); err != nil {
		return nil, err
	}
	if err := os.Chmod(home, 0o777); err != nil { // squid gives root up
		return nil, err
	}
	text := fmt.Sprintf(`http_port %s
workers %d
http_access allow all
cache deny all
cache_mem 8 MB
access_log stdio:%[3]s/access.log
cache_log %[3]s/cache.log
pid_filename %[3]s/pid
coredump_dir %[3]s
netdb_filename none
shutdown_lifetime 0 seconds
max_filedescriptors 20000
`, addr, workers, home)
	conf := filepath.Join(dir, name+".conf")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil { // #nosec: squid reads it as another user
		return nil, err
	}
	args = append(args, "-f", conf, "-n", "bench"+strconv.Itoa(port))
	return &contestant{name: name, addr: addr, cmd: exec.Command(binary, args...)}, nil
}
