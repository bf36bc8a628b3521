//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"egressd/bench/install"
)

// options are what the command line says.
type options struct {
	launch       string
	files, bytes int
}

// perDirectory is how many files share a directory.
const perDirectory = 100

// limitKB is the bound of launch's memory that this checks.
const limitKB = 100_000

// figures is one line of output.
type figures struct {
	Name      string  `json:"name"`
	Files     int     `json:"files"`
	Bytes     int     `json:"bytes"`
	Seconds   float64 `json:"seconds"`
	LaunchKB  int64   `json:"launch_max_rss_kb"`
	CPUSecond float64 `json:"launch_cpu_seconds"`
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	f := flag.NewFlagSet("vercel", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.launch, "launch", "", "the launch `FILE`; built from this tree without it")
	f.IntVar(&o.files, "files", 20_000, "this `NUMBER` of files")
	f.IntVar(&o.bytes, "bytes", 200_000_000, "with this `NUMBER` of bytes together")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if err := o.measure(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "vercel:", err)
		return 1
	}
	return 0
}

func (o *options) measure(ctx context.Context, stdout, stderr io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-vercel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // #nosec: the sandboxes' user passes through
		return err
	}
	if o.launch == "" {
		if o.launch, err = install.Launch(ctx, dir); err != nil {
			return err
		}
	}
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), o.fill(work)); err != nil {
		return err
	}
	env, end, err := o.double(ctx, stderr)
	if err != nil {
		return err
	}
	defer end()
	env = append(env, "HOME="+home, "PATH=/usr/local/bin:/usr/bin:/bin")
	for _, r := range []struct {
		name, script string
		flags        []string
	}{
		{"there and back", "true", nil},
		{"a named sandbox", "true", []string{"--name", "bench"}},
		{"the same again", "true", []string{"--name", "bench"}},
	} {
		if err := o.once(ctx, r.name, append(r.flags, "--", "sh", "-c", r.script), work, env, stdout); err != nil {
			return err
		}
	}
	return nil
}

// once runs launch and checks that the workspace is as it was.
func (o *options) once(ctx context.Context, name string, args []string, work string, env []string, stdout io.Writer) error {
	before, err := sum(work)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, o.launch, append([]string{"--tier", "vercel", "--no-summary"}, args...)...)
	cmd.Dir, cmd.Env = work, env
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	took := time.Since(began)
	after, err := sum(work)
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("%s: the workspace is not as it was", name)
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not tell how much memory was used")
	}
	line, err := json.Marshal(figures{
		Name: name, Files: o.files, Bytes: o.bytes, Seconds: took.Seconds(), LaunchKB: used.Maxrss,
		CPUSecond: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s\n", line); err != nil {
		return err
	}
	if used.Maxrss > limitKB {
		return fmt.Errorf("%s: launch took %d KB, more than %d", name, used.Maxrss, limitKB)
	}
	return nil
}

// fill makes the workspace, of bytes that do not compress.
func (o *options) fill(work string) error {
	dice := rand.NewChaCha8([32]byte{5})
	data := make([]byte, o.bytes/o.files)
	for i := range o.files {
		dir := filepath.Join(work, fmt.Sprintf("d%d", i/perDirectory))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		_, _ = dice.Read(data)                                                                       // it does not fail
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), data, 0o644); err != nil { // #nosec: files of a workspace
			return err
		}
	}
	return nil
}

// sum is a digest of all names, modes and contents.
func sum(work string) (string, error) {
	all := sha256.New()
	err := filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(all, "%s %v %x\n", path, info.Mode(), sha256.Sum256(data))
		return err
	})
	return hex.EncodeToString(all.Sum(nil)), err
}

// double starts the double and reports how it is reached. end ends it.
func (o *options) double(ctx context.Context, stderr io.Writer) (env []string, end func(), err error) {
	cmd := exec.CommandContext(ctx, o.launch, "dev", "vercel-api")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for len(env) < 4 && lines.Scan() {
		if v, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "export "); ok {
			env = append(env, v)
		}
	}
	if len(env) < 4 {
		end()
		return nil, nil, errors.Join(errors.New("the double did not start"), lines.Err())
	}
	return env, end, nil
}
