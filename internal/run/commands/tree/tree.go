// Package tree is the command line of launch workspace: a git work tree to a run and
// back.
//
//	commands = append(commands, tree.Commands(l)...)
package tree

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/internal/run/workspace"
	"egressd/internal/run/workspace/redact"
)

const help = `launch workspace carries a git work tree to a run, and back what the run made of it.

  launch workspace capture [--untracked PATTERN] [--deny PATTERN] CAPTURE
                          write HEAD, what is not committed, and the untracked files that match
                          to a new directory; .env, keys and what --deny names stay out
  launch workspace materialise CAPTURE DIR
                          make the work tree of a capture in a new directory
  launch workspace collect [--secret NAME] [--id ID] CAPTURE DIR RESULT
                          write what differs in DIR to a new directory, without the values of
                          these variables; exit 1 if a change had to stay behind
  launch workspace pull [--branch] RESULT
                          bring it into this repository: into the work tree if that is clean and
                          where the run began, else to the branch warrant/ID

Nothing that a repository names is run: no hook, no filter, no fsmonitor.
`

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands is launch workspace.
func Commands(l *run.Launcher) []cli.Command {
	return []cli.Command{{
		Name: "workspace", Run: launcher{l}.workspace, Words: words,
		Flags: func() *flag.FlagSet { return new(options).flags("") },
	}}
}

func words() []string { return []string{"capture", "materialise", "collect", "pull"} }

type options struct {
	untracked, deny, secrets policyflags.List
	id                       string
	branch                   bool
}

// flags are those of a command; "": of all.
func (o *options) flags(of string) *flag.FlagSet {
	fs := flag.NewFlagSet("launch workspace "+of, flag.ContinueOnError)
	if of == "" || of == "capture" {
		fs.Var(&o.untracked, "untracked", "also capture untracked files that match this `PATTERN`")
		fs.Var(&o.deny, "deny", "do not capture what matches this `PATTERN`, besides .env, .env.*, *.pem, *.key, id_rsa* and id_ed25519*")
	}
	if of == "" || of == "collect" {
		fs.Var(&o.secrets, "secret", "replace the value of this variable `NAME` wherever it is")
		fs.StringVar(&o.id, "id", "", "the `ID` of the run, for the name of a branch")
	}
	if of == "" || of == "pull" {
		fs.BoolVar(&o.branch, "branch", false, "always make a branch, and leave the work tree alone")
	}
	return fs
}

// workspace runs one command of launch workspace.
func (l launcher) workspace(args []string) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		return l.Print(help)
	}
	var o options
	operands, does := 0, l.capture
	switch args[0] {
	case "capture":
		operands = 1
	case "materialise":
		operands, does = 2, l.materialise
	case "collect":
		operands, does = 3, l.collect
	case "pull":
		operands, does = 1, l.pull
	default:
		return l.Fail(cli.ExitUsage, fmt.Errorf("workspace has no command %q\nsee launch workspace help", args[0]))
	}
	fs := o.flags(args[0])
	if code, done := l.Parse(fs, args[1:]); done {
		return code
	}
	if fs.NArg() != operands {
		return l.Fail(cli.ExitUsage, fmt.Errorf("workspace %s takes %d directories, not %d\nsee launch workspace help", args[0], operands, fs.NArg()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := does(ctx, &o, fs.Args())
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return code
}

func (l launcher) capture(ctx context.Context, o *options, at []string) (int, error) {
	done, err := workspace.Capture(ctx, workspace.Source{
		Dir: ".", Untracked: o.untracked, Deny: append(workspace.DenyPatterns(), o.deny...),
	}, at[0])
	if err != nil {
		return 0, err
	}
	l.refused(done.Refused)
	if n := len(done.Manifest.DeniedPaths); n > 0 {
		l.Say("launch: denied and left out: %s\n", cli.Safe(strings.Join(done.Manifest.DeniedPaths[:min(n, 10)], ", ")))
	}
	if done.Made {
		l.Say("launch: the history is left out: it holds denied files, or breaks off\n")
	}
	return l.Print(fmt.Sprintf("captured %d files and %d untracked ones at %s\n", done.Files, len(done.Manifest.UntrackedFiles), done.Manifest.BaseRef)), nil
}

func (l launcher) refused(list []workspace.Problem) {
	for i, p := range list {
		if i == 10 {
			l.Say("launch: and %d more\n", len(list)-i)
			break
		}
		l.Say("launch: left out: %s: %s\n", cli.Safe(p.Path), cli.Safe(p.Why))
	}
}

func (l launcher) materialise(ctx context.Context, _ *options, at []string) (int, error) {
	return cli.ExitOK, workspace.Materialise(ctx, at[0], at[1])
}

func (l launcher) collect(ctx context.Context, o *options, at []string) (int, error) {
	var secrets []redact.Secret
	for _, name := range o.secrets {
		value := l.Getenv(name)
		if value == "" {
			return 0, fmt.Errorf("--secret %s: it is not set: export it, or leave the flag out", name)
		}
		secrets = append(secrets, redact.Secret{Name: name, Value: value})
	}
	if err := workspace.CheckID(o.id); err != nil {
		return 0, fmt.Errorf("--id: %w", err)
	}
	out, err := workspace.Collect(ctx, at[0], at[1], secrets)
	if err != nil {
		return 0, err
	}
	out.RunID = o.id
	if err := out.Write(at[2]); err != nil {
		return 0, err
	}
	l.refused(out.Refused)
	code := l.Print(fmt.Sprintf("%d files changed\n", len(out.Changed)))
	if len(out.Refused) > 0 {
		code = cli.ExitNo
	}
	return code, nil
}

func (l launcher) pull(ctx context.Context, o *options, at []string) (int, error) {
	out, err := workspace.ReadResult(at[0])
	if err != nil {
		return 0, err
	}
	landed, err := workspace.Pull(ctx, workspace.Target{Dir: ".", Branch: o.branch}, out)
	switch {
	case err != nil:
		return 0, err
	case landed.Paths == 0:
		return l.Print("nothing has changed\n"), nil
	case landed.Branch != "":
		return l.Print(fmt.Sprintf("%d files changed on the branch %s\n", landed.Paths, landed.Branch)), nil
	}
	return l.Print(fmt.Sprintf("%d files changed in the work tree\n", landed.Paths)), nil
}
