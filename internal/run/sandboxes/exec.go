package sandboxes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/records"
)

// ExecOptions is what one run in a sandbox has of its own.
type ExecOptions struct {
	Env     []string // NAME or NAME=VALUE each
	Dir     string   // "": as the sandbox was made
	Timeout string   // as cli.ParseLimit reads it; "": as the sandbox was made
}

// flags spells the options as flags of launch.
func (o ExecOptions) flags() []string {
	var args []string
	for _, v := range o.Env {
		args = append(args, "--env="+v)
	}
	if o.Dir != "" {
		args = append(args, "--workdir="+o.Dir)
	}
	if o.Timeout != "" {
		args = append(args, "--timeout="+o.Timeout)
	}
	return args
}

// Exec runs a program in a sandbox, with the flags that the sandbox was made with.
// It reports the program's exit code.
func (s *Set) Exec(sandbox string, argv []string, o ExecOptions) (int, error) {
	return s.exec(sandbox, argv, o, run.Keeping{Mode: records.Foreground})
}

// Attended is Exec for a program that needs a terminal, as a shell does.
func (s *Set) Attended(sandbox string, argv []string, o ExecOptions) (int, error) {
	if !term.IsTerminal(int(s.Stdin.Fd())) || !term.IsTerminal(int(s.Stdout.Fd())) {
		return cli.ExitUsage, errors.New("the standard input and output are no terminal, so the program would get none: use launch sandbox exec without -t")
	}
	return s.Exec(sandbox, argv, o)
}

func (s *Set) exec(sandbox string, argv []string, own ExecOptions, k run.Keeping) (int, error) {
	b, err := s.sandbox(sandbox)
	if err != nil {
		return cli.ExitNo, err
	}
	if err := s.trusted(b); err != nil {
		return cli.ExitNo, err
	}
	if err := os.Chdir(b.Workspace); err != nil {
		return cli.ExitNo, fmt.Errorf("the workspace of sandbox %s: %w", b.Name, err)
	}
	k.Name, k.Raw = b.Name, b.Flags
	b.Flags = slices.DeleteFunc(slices.Clone(b.Flags), func(f string) bool {
		return slices.ContainsFunc(own.Env, func(v string) bool { return sameVariable(f, v) })
	})
	more := own.flags()
	if k.Announce != nil {
		more = append(more, "--quiet")
	}
	o, err := flagsOf(b, more...)
	if err != nil {
		return cli.ExitNo, err
	}
	o.Argv, o.Keeping = argv, k
	if err := o.Validate(); err != nil {
		return cli.ExitNo, fmt.Errorf("the flags of sandbox %s: %w", b.Name, err)
	}
	return s.Run(o), nil
}

// trusted refuses a record whose flags launch did not write.
func (s *Set) trusted(b records.Sandbox) error {
	err := s.store.Trusted(b)
	if !errors.Is(err, records.ErrChanged) {
		return err
	}
	var flags []string
	for _, f := range b.Flags {
		flags = append(flags, cli.Safe(cli.Quote(f)))
	}
	return fmt.Errorf("sandbox %s: %w, so its flags are not used\n  it says: %s\n  type the flags that you want: cd %s && launch --name %s FLAGS -- PROGRAM",
		b.Name, err, strings.Join(append(flags, "--"), " "), cli.Safe(cli.Quote(b.Workspace)), b.Name)
}

// sameVariable reports whether flag passes the variable on that v, NAME or
// NAME=VALUE, is about.
func sameVariable(flag, v string) bool {
	name, ok := strings.CutPrefix(flag, "--env=")
	other, _, _ := strings.Cut(v, "=")
	return ok && name == other
}

// BackgroundCommand is the first argument of launch sandbox in the process that
// Detach starts. Background runs there.
const BackgroundCommand = "--background"

// announcement is the descriptor on which the process of Background names its
// program's process, or says why there is none.
const announcement = 3

// Detach is Exec in the background: it starts this program once more, away from the
// terminal, and prints the ID of the process.
func (s *Set) Detach(sandbox string, argv []string, o ExecOptions) error {
	if _, err := s.sandbox(sandbox); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	args := slices.Concat([]string{os.Args[0], "sandbox", BackgroundCommand}, o.flags(), []string{sandbox}, argv)
	child, err := os.StartProcess(self, args, &os.ProcAttr{
		Env: s.Environ, Files: []*os.File{null, null, null, w}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return err
	}
	id, ok := strings.CutSuffix(string(said), "\n")
	if !ok || records.ValidName(id) != "" {
		_, _ = child.Wait()
		return errors.New(strings.TrimPrefix(strings.TrimSpace(string(said)), "launch: "))
	}
	s.Print(id + "\n")
	return child.Release()
}

// Background is the other half of Detach. args are those behind BackgroundCommand.
// It reports the exit code.
func Background(l *run.Launcher, args []string) int {
	out := os.NewFile(announcement, "announcement")
	if out == nil {
		return run.ExitLauncher
	}
	syscall.CloseOnExec(announcement)
	program, launcher := *l.Program, *l
	program.Stderr, launcher.Program = out, &program
	set, err := Open(&launcher)
	if err != nil {
		return program.Fail(run.ExitLauncher, err)
	}
	defer set.Close()
	var o ExecOptions
	for len(args) > 1 && strings.HasPrefix(args[0], "--") {
		name, value, _ := strings.Cut(args[0], "=")
		switch args = args[1:]; name {
		case "--env":
			o.Env = append(o.Env, value)
		case "--workdir":
			o.Dir = value
		case "--timeout":
			o.Timeout = value
		}
	}
	code, err := set.exec(args[0], args[1:], o, run.Keeping{Mode: records.Background, Announce: out})
	if err != nil {
		return program.Fail(run.ExitLauncher, err)
	}
	return code
}
