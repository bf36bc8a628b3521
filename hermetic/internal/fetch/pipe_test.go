package fetch_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/fetch"
	"egressd/hermetic/internal/wget"
	"egressd/hermetic/limits"
)

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Nobody reads any more: the end is that of SIGPIPE, and silent.
func TestPipe(t *testing.T) {
	r := newRig(t)
	ctx, b, stop := limits.New(t.Context(), limits.Limits{})
	defer stop()
	for _, line := range []string{"curl http://a.example/endless", "curl http://a.example/hello http://a.example/hello", "wget -O - http://a.example/endless", "wget -q -O - http://a.example/hello"} {
		var errs bytes.Buffer
		args := strings.Fields(line)
		c := &command.Call{
			Args: args, Stdin: strings.NewReader(""), Stdout: closedPipe{}, Stderr: &errs, Dir: "/",
			Session: &command.Session{FS: r.fs, Budget: b, Now: time.Now, Proxy: r.proxy, Roots: r.roots},
		}
		if status := commands()[args[0]](ctx, c); status != fetch.StatusPipe || strings.Contains(errs.String(), "roken") {
			t.Errorf("%s: %d %q", line, status, errs.String())
		}
		c.Stdout = fullDisk{}
		if status := commands()[args[0]](ctx, c); status != fetch.ExitWrite && status != wget.WgetFile {
			t.Errorf("%s with a full disk: %d", line, status)
		}
	}
}
