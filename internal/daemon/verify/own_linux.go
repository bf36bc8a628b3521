package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// adminAt asks for /healthz. A captured connection may be accepted, but it is
// not the admin server that answers.
func adminAt(addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel := context.WithTimeout(ctx, config.timeout())
		defer cancel()
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return pass(last(err))
		}
		defer c.Close()
		setDeadline(ctx, c)
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
			return pass(last(err))
		}
		b, _ := io.ReadAll(io.LimitReader(c, 4096)) // what came so far is what counts
		if line, _, _ := strings.Cut(string(b), "\r\n"); strings.HasPrefix(line, "HTTP/1.") && strings.Contains(line, " 200 ") {
			return leak("it answers", "name the port: egressd capture --protect-port, or use a unix socket")
		}
		return pass("it does not answer")
	}
}

func unixAt(path string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel := context.WithTimeout(ctx, config.timeout())
		defer cancel()
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return pass(last(err))
		}
		c.Close()
		return leak("it accepts connections", adviseHidden)
	}
}

func writable(path string) func(context.Context, Config) Result {
	return func(context.Context, Config) Result {
		err := unix.Access(path, unix.W_OK)
		if err == nil {
			return leak("this program may write there", adviseHidden)
		}
		return pass(err.Error())
	}
}

// maxProcesses bounds the processes that are looked at.
const maxProcesses = 4096

// memory tries to open the memory and environment of every other egressd that
// can be seen.
func memory(_ context.Context, c Config) Result {
	dir, err := os.Open("/proc")
	if err != nil {
		return pass(err.Error())
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxProcesses)
	if err != nil && !errors.Is(err, io.EOF) {
		return pass(err.Error())
	}
	seen := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		var st unix.Stat_t
		comm, err := os.ReadFile("/proc/" + name + "/comm")
		if err != nil || strings.TrimSpace(string(comm)) != "egressd" || unix.Stat("/proc/"+name, &st) != nil {
			continue
		}
		seen++
		for _, what := range []string{"mem", "environ"} {
			f, err := os.Open("/proc/" + name + "/" + what)
			if err == nil {
				f.Close()
				return leak(fmt.Sprintf("/proc/%s/%s can be opened (user %d)", name, what, st.Uid), adviseHidden)
			}
		}
	}
	if seen == 0 {
		return pass("not to be seen from here")
	}
	return pass("not to be opened")
}
