package rules

import (
	"errors"
	"flag"
	"io/fs"
	"path/filepath"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/run/project"
	"egressd/policy"
)

type trustOptions struct{ list, remove bool }

func (o *trustOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("trust", flag.ContinueOnError)
	fs.BoolVar(&o.list, "list", false, "list the project files that you trust")
	fs.BoolVar(&o.remove, "remove", false, "trust the file no longer")
	return fs
}

// trust trusts a project file as it is now, lists what is trusted, or takes trust away.
func (l launcher) trust(args []string) int {
	var o trustOptions
	flags := o.flags()
	if code, done := l.Parse(flags, args); done {
		return code
	}
	if flags.NArg() > 1 || o.list && (o.remove || flags.NArg() > 0) {
		return l.Usage(errors.New("write: launch trust [--remove] [FILE], or launch trust --list"))
	}
	if o.list {
		paths, err := l.Trusted().List()
		if err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
		text := ""
		for _, path := range paths {
			text += cli.Safe(path) + "\n"
		}
		return l.Print(text)
	}
	path := flags.Arg(0)
	if path == "" {
		path = project.Name
	}
	if o.remove {
		if err := l.Distrust(path); err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
		return l.Print("not trusted any more: " + cli.Safe(path) + "\n")
	}
	err := l.Trust(path, func(f *project.File) error {
		p, err := policy.Compile(f.Whole)
		if err != nil {
			return err
		}
		l.Print(explain.Policy(f.Path, p) + "trusted until it changes\n")
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New(cli.Safe(path) + " is not there: name the file, launch trust " + filepath.Join("DIR", project.Name))
	}
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	return cli.ExitOK
}
