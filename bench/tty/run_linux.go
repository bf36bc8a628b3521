package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/bench/install"
)

const (
	runTimeout  = time.Minute
	ready       = "ready"
	smallestRun = 1 << 20 // bytes
)

type config struct {
	n, keys, megabytes int
	launch             string
}

// result is one run of one contestant.
type result struct {
	output time.Duration // for all of it
	cpu    time.Duration // of the program, and of launch
	keys   []time.Duration
}

// row is one line of output. Units are in the names.
type row struct {
	What       string  `json:"what"`
	Runs       int     `json:"runs"`
	MBs        float64 `json:"output_mb_per_s"` // median
	CPUPerMB   float64 `json:"cpu_ms_per_mb"`   // median
	KeyUS      float64 `json:"key_echo_us"`     // median
	KeyP99US   float64 `json:"key_echo_p99_us"`
	OutputLess float64 `json:"output_ratio,omitempty"` // of the direct terminal's throughput
}

// run is main without the process: it reports the exit code, 0 when everything was
// measured, 1 when not, 2 for a wrong flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c config
	flags := flag.NewFlagSet("tty", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.n, "n", 5, "runs of each, in turns")
	flags.IntVar(&c.keys, "keys", 500, "keys in each run")
	flags.IntVar(&c.megabytes, "mb", 64, "megabytes of output in each run")
	flags.StringVar(&c.launch, "launch", "", "the launch binary (default: build it from this tree)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.n < 1 || c.keys < 1 || c.megabytes < 1 || c.n > 1000 || c.keys > 1e6 || c.megabytes > 1e5 {
		fmt.Fprintln(stderr, "tty: -n, -keys and -mb must be positive, and not huge")
		return 2
	}
	if err := measure(ctx, c, stdout); err != nil {
		fmt.Fprintln(stderr, "tty:", err)
		return 1
	}
	return 0
}

func measure(ctx context.Context, c config, stdout io.Writer) error {
	if c.launch == "" {
		dir, err := os.MkdirTemp("", "egressd-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if c.launch, err = install.Launch(ctx, dir); err != nil {
			return err
		}
	}
	var direct, relayed []result
	for range c.n {
		for _, who := range []struct {
			prefix  []string
			results *[]result
		}{{nil, &direct}, {[]string{c.launch, "--no-summary", "--"}, &relayed}} {
			r, err := once(ctx, c, who.prefix)
			if err != nil {
				return err
			}
			*who.results = append(*who.results, r)
		}
	}
	a, b := c.row("direct", direct), c.row("launch", relayed)
	b.OutputLess = b.MBs / a.MBs
	enc := json.NewEncoder(stdout)
	return errors.Join(enc.Encode(a), enc.Encode(b))
}

func (c config) row(what string, all []result) row {
	var rates, cpu []float64
	var keys []time.Duration
	for _, r := range all {
		rates = append(rates, float64(c.megabytes)/r.output.Seconds())
		cpu = append(cpu, r.cpu.Seconds()*1000/float64(c.megabytes))
		keys = append(keys, r.keys...)
	}
	slices.Sort(rates)
	slices.Sort(cpu)
	slices.Sort(keys)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	return row{
		What: what, Runs: len(all), MBs: rates[len(rates)/2], CPUPerMB: cpu[len(cpu)/2],
		KeyUS: us(keys[len(keys)/2]), KeyP99US: us(keys[(len(keys)-1)*99/100]),
	}
}

// once measures one run of each kind.
func once(ctx context.Context, c config, prefix []string) (result, error) {
	var r result
	script := fmt.Sprintf("stty raw -echo; printf %s; exec cat", ready)
	err := at(ctx, append(slices.Clone(prefix), "/bin/sh", "-c", script), func(terminal *os.File) error {
		one := make([]byte, 1)
		for range c.keys {
			start := time.Now()
			if _, err := terminal.Write([]byte("x")); err != nil {
				return err
			}
			if _, err := io.ReadFull(terminal, one); err != nil {
				return err
			}
			r.keys = append(r.keys, time.Since(start))
		}
		return nil
	}, nil)
	if err != nil {
		return r, fmt.Errorf("keys: %w", err)
	}
	size := c.megabytes * smallestRun
	script = fmt.Sprintf("stty raw; printf %s; exec head -c %d /dev/zero", ready, size)
	err = at(ctx, append(slices.Clone(prefix), "/bin/sh", "-c", script), func(terminal *os.File) error {
		start := time.Now()
		_, err := io.CopyN(io.Discard, terminal, int64(size))
		r.output = time.Since(start)
		return err
	}, &r.cpu)
	if err != nil {
		return r, fmt.Errorf("output: %w", err)
	}
	return r, nil
}

// at runs argv at a terminal, waits for it to be ready, and calls fn with the
// other side. cpu, if it is not nil, becomes the processor time.
func at(ctx context.Context, argv []string, fn func(terminal *os.File) error, cpu *time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	master := os.NewFile(uintptr(fd), "terminal")
	defer master.Close()
	stop := context.AfterFunc(ctx, func() { master.Close() })
	defer stop()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return err
	}
	if err = await(master); err == nil {
		err = fn(master)
	}
	if cpu == nil {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it has ended
	}
	io.Copy(io.Discard, master) //nolint:errcheck // ends when the other side is closed
	cmd.Wait()                  //nolint:errcheck // it was ended, or did its part
	if cpu != nil && cmd.ProcessState != nil {
		*cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return err
}

// await reads until the program says that it is ready.
func await(r io.Reader) error {
	var seen []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(seen, []byte(ready)) {
		if _, err := r.Read(one); err != nil {
			return err
		}
		seen = append(seen, one[0])
	}
	return nil
}
