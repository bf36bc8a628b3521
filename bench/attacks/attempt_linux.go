package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	attemptTimeout = 40 * time.Second
	stepTimeout    = 4 * time.Minute        // of a day's work: a first go build makes the standard library
	reachTime      = 300 * time.Millisecond // for what was sent to arrive
	outputLimit    = 4 << 20                // bytes that are kept of what a program prints
	systemPath     = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Outcomes.
const (
	contained     = "contained"
	leaked        = "leaked"
	notRun        = "did not run"
	notApplicable = "not applicable"
	notCompared   = "not compared"
)

// result is one attempt's.
type result struct {
	Attack     string `json:"attack"`
	Group      string `json:"group"`
	User       string `json:"user"`
	Who        string `json:"who"`
	Outcome    string `json:"outcome"`
	Told       bool   `json:"told"`
	Documented bool   `json:"documented"`
	Why        string `json:"why,omitempty"`
	Millis     int64  `json:"duration_ms"`
	said       string // everything that was printed
}

// try makes one attempt. An error is the world's, not the attack's.
func try(ctx context.Context, l *laboratory, dir, attacker string, u user, who *contestant, at *attack) (result, error) {
	r := result{Attack: at.name, Group: at.group, User: u.name, Who: who.name, Documented: at.documented != ""}
	limit := attemptTimeout
	if at.group == daysWork {
		limit = stepTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w, err := newWorld(ctx, l, dir, attacker, u.uid, u.gid)
	if w != nil {
		defer w.remove()
	}
	if err != nil {
		return r, err
	}
	a := &attempt{world: w, attack: at, who: who}
	start := time.Now()
	err = a.run()
	r.Millis = time.Since(start).Milliseconds()
	if err != nil {
		return r, err
	}
	r.said = fmt.Sprintf("%s%s\n--- sandbox:\n%s", a.stdout, a.screen, a.stderr)
	r.Outcome = contained
	switch {
	case a.succeeded():
		r.Outcome = leaked
	case !a.began():
		r.Outcome, r.Why = notRun, firstLine(append(a.stderr, a.screen...))
	}
	r.Told = who.name != without && a.told()
	if at.group == refused { // there it is the client that tells
		r.Told = r.Outcome == contained && said.Match(bytes.ReplaceAll(a.stdout, []byte(dir), nil)) // our own name is in dir
	}
	l.forget()
	return r, nil
}

// run prepares the world, runs the script and ends all that it left.
func (a *attempt) run() error {
	if a.attack.setup != nil {
		if err := errors.Join(a.attack.setup(a), own(a.base, a.uid, a.gid)); err != nil {
			return err
		}
	}
	argv, err := a.who.argv(a.world, a.attack.script)
	if err != nil {
		return err
	}
	if a.attack.terminal != nil {
		err = a.atTerminal(argv)
	} else {
		err = a.piped(argv)
	}
	a.settle()
	return errors.Join(append(a.setupErrs, err)...)
}

// piped runs argv with pipes, and calls during when the script is ready.
func (a *attempt) piped(argv []string) error {
	cmd := exec.CommandContext(a.ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = a.ws, a.environment(a.who)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential(), Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a survivor may hold the pipes
	out, errs := &watched{word: "READY", fresh: make(chan struct{})}, &watched{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		return err
	}
	if a.attack.during != nil {
		a.background(func(stop <-chan struct{}) {
			select {
			case <-out.fresh:
				a.attack.during(a)
			case <-stop:
			}
		})
	}
	cmd.Wait() //nolint:errcheck // whether it ran is read from what it printed
	a.stdout, a.stderr = out.data, errs.data
	return nil
}

// succeeded asks the check; what was sent gets a moment to arrive.
func (a *attempt) succeeded() bool {
	end := time.Now().Add(reachTime)
	for {
		if a.attack.check(a) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		select {
		case <-a.ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// began reports whether the script ran at all: a sandbox that starts nothing contains everything.
func (a *attempt) began() bool {
	if a.attack.terminal == nil {
		return bytes.Contains(a.stdout, []byte("BEGIN"))
	}
	log, err := os.ReadFile(a.base + "/log")
	return bytes.Contains(a.screen, []byte("BEGIN")) || (err == nil && bytes.Contains(log, []byte("BEGIN")))
}

// told reports whether the sandbox, not the program, said something about it.
func (a *attempt) told() bool {
	if a.attack.tell == "" {
		return false
	}
	events, _ := os.ReadFile(a.events) // none: nothing was told there
	for _, line := range strings.Split(string(events)+"\n"+string(a.stderr), "\n") {
		if strings.Contains(line, a.attack.tell) && !strings.Contains(line, "command.executed") {
			return true
		}
	}
	return false
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line[:min(len(line), 200)]
}

// watched keeps what is written, and closes fresh when it holds word.
type watched struct {
	data  []byte
	word  string
	fresh chan struct{}
	done  bool
}

func (w *watched) Write(p []byte) (int, error) {
	if len(w.data) < outputLimit {
		w.data = append(w.data, p...)
	}
	if w.word != "" && !w.done && bytes.Contains(w.data, []byte(w.word)) {
		w.done = true
		close(w.fresh)
	}
	return len(p), nil
}
