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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/bench/install"
)

const (
	nobody    = 65534
	labArg    = "-in-a-namespace-of-its-own"
	exitWrong = 2
)

type config struct {
	launch, srt, fence string
	dir, only          string
	json, show, day    bool
	clients            bool
	page               string
	inside             bool // the namespaces are made
}

// user is somebody who runs the sandboxes.
type user struct {
	name     string
	uid, gid int
}

// run is main without the process: it reports the exit code, 0 when every attack worked
// without a sandbox and launch let through what is documented and no more, 1 when not,
// 2 for a wrong flag.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if filepath.Base(os.Args[0]) == attackerName {
		return attackMain(args, stdout)
	}
	var c config
	flags := flag.NewFlagSet("attacks", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.launch, "launch", "", "the launch binary (default: build it from this tree)")
	flags.StringVar(&c.srt, "srt", "srt", "the srt binary")
	flags.StringVar(&c.fence, "fence", "fence", "the fence binary")
	flags.StringVar(&c.dir, "dir", "", "make homes and workspaces below this directory, not in /tmp (default: /srv for root, else the home directory)")
	flags.StringVar(&c.only, "only", "", "only attacks whose group and name fit this regular expression")
	flags.BoolVar(&c.json, "json", false, "print a line of JSON for each attempt; the table goes to the standard error")
	flags.BoolVar(&c.day, "day", false, "instead of attacks, a day's work: git, npm, pip, cargo, go")
	flags.BoolVar(&c.clients, "clients", false, "instead of attacks, real clients towards a host that is allowed and one that is not; as root")
	flags.StringVar(&c.page, "page", "", "with -clients: write the table into this page, docs/comparison.md")
	flags.BoolVar(&c.show, "show", false, "print what each script and each sandbox said to the standard error")
	flags.BoolVar(&c.inside, labArg[1:], false, "for this program itself: it is in namespaces of its own")
	if err := flags.Parse(args); err != nil {
		return exitWrong
	}
	if _, err := regexp.Compile(c.only); err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "attacks: -only is no regular expression, or there are arguments:", err, flags.Args())
		return exitWrong
	}
	if c.clients && os.Getuid() != 0 || c.page != "" && (!c.clients || c.only != "" || c.json) {
		fmt.Fprintln(stderr, "attacks: -clients needs a network of its own: run it as root; -page needs -clients, and all of them")
		return exitWrong
	}
	good, err := c.prepare(ctx, args, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "attacks:", err)
	}
	if err != nil || !good {
		return 1
	}
	return 0
}

// prepare builds launch, makes the namespaces and runs the attacks in them.
func (c config) prepare(ctx context.Context, args []string, stdout, stderr io.Writer) (bool, error) {
	if c.dir == "" {
		c.dir = "/srv"
		if os.Getuid() != 0 {
			home, err := os.UserHomeDir()
			if err != nil {
				return false, err
			}
			c.dir = home
		}
	}
	if c.inside {
		return c.attack(ctx, stdout, stderr)
	}
	dir, err := os.MkdirTemp(c.dir, "egressd-attacks-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // #nosec: others run what is in it
		return false, err
	}
	if c.launch == "" {
		if c.launch, err = install.Launch(ctx, dir); err != nil {
			return false, err
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return false, err
	}
	attacker := filepath.Join(dir, attackerName)
	if err := os.WriteFile(attacker, self, 0o755); err != nil { // #nosec: a program
		return false, err
	}
	if c.launch, err = filepath.Abs(c.launch); err != nil {
		return false, err
	}
	c.dir = dir
	if os.Getuid() != 0 {
		fmt.Fprintln(stderr, "attacks: not root: what needs addresses of its own, or root, is left out")
		return c.attack(ctx, stdout, stderr)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{labArg}, append(args, "-launch", c.launch, "-dir", dir)...)...)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(stdout, &printed), stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it tidies up
	cmd.WaitDelay = attemptTimeout
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil // it said why
	}
	if err == nil && c.page != "" {
		err = writePage(c.page, printed.String()) // here, where nothing is covered
	}
	return err == nil, err
}

// attack makes every attempt, and reports what came of them.
func (c config) attack(ctx context.Context, stdout, stderr io.Writer) (bool, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return false, err
	}
	l := &laboratory{own: c.inside, serve: c.clients}
	scratch := filepath.Join(c.dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return false, err
	}
	if err := l.open(ctx, scratch); err != nil {
		return false, err
	}
	defer l.shut()
	users := []user{{"user", os.Getuid(), os.Getgid()}}
	if c.inside {
		users = []user{{"nobody", nobody, nobody}, {"root", 0, 0}}
	}
	field := contestants(c)
	if c.clients {
		users = users[:1] // as people work
		field = slices.DeleteFunc(field, func(who *contestant) bool { return who.name == srtHidden })
		field = append(field, &contestant{
			name: variables, program: c.launch, config: "egress.yaml",
			args: func(w *world) []string { return []string{"--isolation", "env", "--policy", w.settings, "--"} },
		})
		for _, who := range field {
			who.content = clientSettings[who.name]
		}
	}
	here, missing := find(ctx, field)
	for _, m := range missing {
		fmt.Fprintln(stderr, "attacks: left out:", m)
	}
	search := systemPath
	if c.day || c.clients {
		search = tools(ctx)
	}
	for _, who := range here {
		who.search = search
		if who.name == fence {
			if err := who.helpProbe(c.dir); err != nil {
				return false, err
			}
		}
	}
	results, err := c.each(ctx, l, users, here, stderr)
	if err != nil {
		return false, err
	}
	to := stdout
	if c.json {
		to = stderr
		enc := json.NewEncoder(stdout)
		for _, r := range results {
			if err := enc.Encode(r); err != nil {
				return false, err
			}
		}
	}
	text, wrong := table(users, here, results), judge(results)
	if c.day {
		text, wrong = dayTable(users, here, results), judgeDay(results)
	}
	if c.clients {
		text, wrong = clientTable(users[0], here, results, versions(ctx, search)), judgeClients(users[0], results)
	}
	if _, err := io.WriteString(to, text); err != nil {
		return false, err
	}
	for _, w := range wrong {
		fmt.Fprintln(stderr, "attacks:", w)
	}
	return len(wrong) == 0, nil
}

// each makes the attempts, one after the other.
func (c config) each(ctx context.Context, l *laboratory, users []user, here []*contestant, stderr io.Writer) ([]result, error) {
	only := regexp.MustCompile(c.only) // run has compiled it
	var results []result
	list := all()
	if c.day {
		list = day()
	}
	if c.clients {
		list = clientAttacks(filepath.Join(c.dir, "scratch/repo.git"))
	}
	for _, at := range list {
		if !only.MatchString(at.group + ": " + at.name) {
			continue
		}
		for _, u := range users {
			fmt.Fprintf(stderr, "%s: %s, %s\n", at.group, at.name, u.name)
			for _, who := range here {
				r := result{Attack: at.name, Group: at.group, User: u.name, Who: who.name, Outcome: notApplicable}
				if at.alone && who.name != ours && who.name != without {
					r.Outcome = notCompared
				} else if at.fits(u, l) {
					var err error
					if r, err = try(ctx, l, c.dir, filepath.Join(c.dir, attackerName), u, who, &at); err != nil {
						return nil, fmt.Errorf("%s, %s: %w", at.name, who.name, err)
					}
					reap(l.daemon)
					if c.show {
						fmt.Fprintf(stderr, "--- %s: %s\n%s\n", who.name, r.Outcome, r.said)
					}
				}
				results = append(results, r)
				if err := ctx.Err(); err != nil {
					return nil, err
				}
			}
		}
	}
	return results, nil
}

// fits reports whether the attack could succeed for this user without a sandbox.
func (at *attack) fits(u user, l *laboratory) bool {
	return (at.needs&rooted == 0 || u.uid == 0 && l.own) && (at.needs&lab == 0 || l.own)
}

// reap ends what a contestant left behind, all but keep. Orphans become our children.
func reap(keep int) {
	for {
		text, err := os.ReadFile("/proc/thread-self/children")
		files, _ := filepath.Glob("/proc/self/task/*/children") // its one error is a bad pattern
		for _, f := range files {
			more, _ := os.ReadFile(f) // a thread that ended has none
			text = append(append(text, ' '), more...)
		}
		pids := strings.Fields(string(text))
		pids = slices.DeleteFunc(pids, func(p string) bool { return p == strconv.Itoa(keep) })
		if err != nil || len(pids) == 0 {
			return
		}
		for _, p := range pids {
			pid, err := strconv.Atoi(p)
			if err != nil {
				continue
			}
			unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // it may have ended
			unix.Wait4(pid, nil, 0, nil) //nolint:errcheck // somebody else waited for it
		}
	}
}
