package fetch_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// bubble is a session whose gate answers what it was given, one answer for each
// connection; it has no socket, so that it works in a synctest bubble.
type bubble struct {
	t       *testing.T
	answers []string
	fs      *vfs.FS
	bodies  []string // of the requests
	silent  bool     // it reads, and never answers
}

func newBubble(t *testing.T, answers ...string) *bubble {
	fs, err := vfs.Open(vfs.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return &bubble{t: t, answers: answers, fs: fs}
}

func (b *bubble) proxy(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	answer := ""
	if len(b.answers) > 0 {
		answer, b.answers = b.answers[0], b.answers[1:]
	}
	go func() {
		defer theirs.Close()
		q, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(q.Body)
		b.bodies = append(b.bodies, string(body))
		if b.silent {
			_, _ = io.Copy(io.Discard, theirs)
			return
		}
		_, _ = io.WriteString(theirs, answer)
	}()
	return ours, nil
}

func (b *bubble) run(args ...string) result { return b.runOn(strings.NewReader(""), args...) }

func (b *bubble) runOn(in io.Reader, args ...string) result {
	ctx, budget, stop := limits.New(b.t.Context(), limits.Limits{})
	defer stop()
	var out, errs bytes.Buffer
	status := commands()[args[0]](ctx, &command.Call{
		Args: args, Stdin: in, Stdout: &out, Stderr: &errs, Dir: "/",
		Session: &command.Session{FS: b.fs, Budget: budget, Now: time.Now, Proxy: b.proxy},
	})
	return result{status, out.String(), errs.String()}
}
