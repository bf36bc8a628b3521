package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"egressd/test/e2e/job"
)

const (
	attemptTimeout = 8 * time.Second // one attempt in its own process
	stepTimeout    = 3 * time.Second // one network step inside it
	parallelDoors  = 8               // attempts at doors run side by side
	bareUsage      = "usage: probe run | one | storm | bare -- PROGRAM [ARG...]"
)

// attempt is one thing an attacker does. It reports through the Result.
type attempt func(j job.Job) job.Result

// run executes one sub-command: run (a list of jobs), one (a single job in
// this process), bare (drop ambient capabilities and execute a program), or a
// child role that an attempt needs.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, bareUsage)
		return 2
	}
	var err error
	switch args[0] {
	case "run":
		err = runAll(stdin, stdout)
	case "one":
		err = runOne(stdin, stdout)
	case "bare":
		err = bare(args[1:])
	case "storm":
		err = storm(stdin, stdout)
	case "linger":
		err = linger(args[1:])
	default:
		err = errors.New(bareUsage)
	}
	if err != nil {
		fmt.Fprintln(stderr, "probe:", err)
		return 1
	}
	return 0
}

// runAll runs the jobs from stdin: attempts at doors in this process and side
// by side, all others one after the other in a process of their own, since the
// kernel may kill them for trying.
func runAll(stdin io.Reader, stdout io.Writer) error {
	var jobs []job.Job
	if err := json.NewDecoder(stdin).Decode(&jobs); err != nil {
		return err
	}
	results := make([]job.Result, len(jobs))
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelDoors)
	for i, j := range jobs {
		if !strings.HasPrefix(j.Op, "door.") {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			results[i] = try(j)
			<-slots
		})
	}
	wg.Wait()
	for i, j := range jobs {
		if !strings.HasPrefix(j.Op, "door.") {
			results[i] = inChild(j)
		}
	}
	return json.NewEncoder(stdout).Encode(results)
}

func runOne(stdin io.Reader, stdout io.Writer) error {
	var j job.Job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(try(j))
}

func try(j job.Job) job.Result {
	f := attempts()[j.Op]
	if f == nil {
		return job.Result{ID: j.ID, Status: -1, Err: "unknown attempt " + j.Op}
	}
	r := f(j)
	r.ID = j.ID
	return r
}

// inChild runs one attempt in a child, and reports the signal that ended it
// when one did.
func inChild(j job.Job) job.Result {
	r := job.Result{ID: j.ID, Status: -1}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	in, err := json.Marshal(j)
	if err != nil {
		r.Err = err.Error()
		return r
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "one")
	cmd.Stdin = bytes.NewReader(in)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run()
	if json.Unmarshal(out.Bytes(), &r) == nil && r.ID == j.ID {
		return r
	}
	r = job.Result{ID: j.ID, Status: -1, Err: "no answer"}
	if runErr != nil {
		r.Err = runErr.Error() + " " + first(errs.Bytes(), 200)
	}
	return r
}

// bare clears the ambient and inheritable capabilities that the test process
// holds over its own namespace, so that what it executes is an ordinary
// program of an ordinary user.
func bare(args []string) error {
	if len(args) < 2 || args[0] != "--" {
		return errors.New(bareUsage)
	}
	if err := dropAmbient(); err != nil {
		return err
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args[1:], os.Environ())
}

func first(b []byte, n int) string {
	if len(b) > n {
		b = b[:n]
	}
	return string(b)
}

// fail and done make the two ends of an attempt that is one system call.
func fail(err error) job.Result {
	return job.Result{Status: -1, Err: err.Error()}
}

func done(text string) job.Result { return job.Result{Done: true, Status: -1, Text: text} }

// outcome is done when err is nil.
func outcome(err error, text string) job.Result {
	if err != nil {
		return fail(err)
	}
	return done(text)
}
