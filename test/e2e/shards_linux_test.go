package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// shards are the tests that take long, by the world they run in. The tests of
// one world follow each other, since each of them looks at all of it; worlds
// share nothing and run side by side. What is in no shard runs in one more.
var shards = []string{
	"TestThroughEgressd",
	"TestDaemon|TestExitCodes",
	"TestDaemonTrouble|TestDaemonStuckPipe|TestDaemonReloads|TestDaemonKilled",
	"TestEscapes|TestVerdicts",
}

// runShards runs the tests in as many worlds as there are shards, and in one
// when flags choose the tests or want one file of results. It reports the exit
// code.
func runShards(ctx context.Context, base string, args []string) int {
	whole := [][]string{nil}
	if !chosen() {
		whole = nil
		for _, tests := range shards {
			whole = append(whole, []string{"-test.run=^(" + tests + ")$", "-test.testlogfile="})
		}
		whole = append(whole, []string{"-test.skip=^(" + strings.Join(shards, "|") + ")$"})
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // the order of outputs
	code := 0
	for i, more := range whole {
		wg.Go(func() {
			// The output of a shard is whole lines of its own: written at its end.
			var out bytes.Buffer
			to := io.Writer(&out)
			if len(whole) == 1 {
				to = os.Stdout
			}
			rc := runShard(ctx, filepath.Join(base, fmt.Sprint("world", i)), slices.Concat(args, more), to)
			mu.Lock()
			defer mu.Unlock()
			os.Stdout.Write(out.Bytes()) //nolint:errcheck // nobody is left to tell
			code = max(code, rc)
		})
	}
	wg.Wait()
	return code
}

// chosen reports whether the caller's flags say which tests run, or where
// results of the whole go.
func chosen() (yes bool) {
	flag.Visit(func(f *flag.Flag) {
		switch strings.TrimPrefix(f.Name, "test.") {
		case "run", "skip", "list", "bench", "fuzz", "coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace":
			yes = yes || f.Value.String() != ""
		}
	})
	return yes
}

// runShard runs this binary in a world of its own, with a directory of its own.
func runShard(ctx context.Context, base string, args []string, out io.Writer) int {
	if err := os.Mkdir(base, 0o755); err != nil {
		fmt.Fprintln(out, "e2e:", err)
		return 1
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "EGRESSD_E2E_BASE="+base)
	cmd.SysProcAttr = worldAttr()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EACCES):
		fmt.Fprintf(out, "skipped: this machine gives %s no network namespace of its own: %v\n", who(), err)
		return 0
	}
	fmt.Fprintln(out, "e2e:", err)
	return 1
}

// sourcesRead is done once in a process.
var sourcesRead sync.Once

// readSources looks at every Go file of the module, so that go test takes the
// binaries under test, which it does not know of, for inputs: else it would
// report a cached pass after they have changed.
func readSources(t *testing.T) {
	t.Helper()
	sourcesRead.Do(func() {
		n := 0
		err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			n++
			_, err = os.Stat(path)
			return err
		})
		if err != nil || n < 100 {
			t.Fatalf("%d source files: %v", n, err)
		}
	})
}
