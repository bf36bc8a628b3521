package hermetic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu/gnutest"
	"egressd/hermetic/limits"
)

// endless never ends: what yes writes.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "y\n"[i%2]
	}
	return len(p), nil
}

// What would hold more than a command may fails, and soon.
func TestEndlessInput(t *testing.T) {
	for _, args := range [][]string{{"sort"}, {"tac"}, {"shuf"}, {"column", "-t"}, {"tail", "-n", "999999999999"}, {"head", "-n", "-999999999999"}, {"cut", "-z", "-f1"}} {
		t.Run(args[0], func(t *testing.T) {
			ctx, budget, stop := limits.New(t.Context(), limits.Limits{Memory: 4 << 20})
			defer stop()
			var stderr bytes.Buffer
			c := &command.Call{Args: args, Stdin: endless{}, Stdout: io.Discard, Stderr: &stderr, Dir: "/", Session: &command.Session{Budget: budget}}
			if status := allCommands(t)[args[0]](ctx, c); status == 0 || !strings.Contains(stderr.String(), "memory exhausted") {
				t.Errorf("status %d, %q", status, stderr.String())
			}
		})
	}
}

// What writes without end stops when its reader is gone, or the call is over.
func TestEndlessOutput(t *testing.T) {
	for _, args := range [][]string{{"yes"}, {"seq", "1", "1e18"}, {"seq", "inf"}, {"shuf", "-re", "a"}, {"cat"}, {"tr", "y", "x"}, {"nl"}} {
		t.Run(args[0], func(t *testing.T) {
			_, budget, stop := limits.New(t.Context(), limits.Limits{})
			defer stop()
			call := func(ctx context.Context, out io.Writer) int {
				c := &command.Call{Args: args, Stdin: endless{}, Stdout: out, Stderr: io.Discard, Dir: "/", Session: &command.Session{Budget: budget}}
				return allCommands(t)[args[0]](ctx, c)
			}
			if status := call(t.Context(), &closing{left: 1 << 16}); status != 141 {
				t.Errorf("closed pipe: status %d", status)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			call(ctx, io.Discard)
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error("it ended by itself")
			}
		})
	}
}

// closing is a pipe whose reader leaves.
type closing struct{ left int }

func (c *closing) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

func TestHugeWidths(t *testing.T) {
	for _, args := range [][]string{{"printf", "%999999999d", "1"}, {"printf", "%.999999999f", "1"}, {"tr", "a", "[b*999999999999]"}, {"fold", "-w", "999999999999999"}, {"seq", "-f", "%999999999f", "1"}} {
		r := gnutest.Run(t, allCommands(t), nil, strings.NewReader("x\n"), args...)
		if len(r.Stdout) > 64<<20 {
			t.Errorf("%v wrote %d bytes", args, len(r.Stdout))
		}
	}
}

// head leaves what it has not used to the next command, as far as it can.
func TestHeadGivesBack(t *testing.T) {
	in := strings.NewReader("a\nb\nc\n")
	if r := gnutest.Run(t, allCommands(t), nil, in, "head", "-n", "1"); r.Stdout != "a\n" {
		t.Errorf("head wrote %q", r.Stdout)
	}
	if rest, _ := io.ReadAll(in); string(rest) != "b\nc\n" {
		t.Errorf("%q is left", rest)
	}
}
