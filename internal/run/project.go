package run

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/run/microvm"
	"egressd/internal/run/project"
	"egressd/policy"
)

// RegisterNoProject adds --no-project to fs.
func RegisterNoProject(fs *flag.FlagSet, off *bool) {
	fs.BoolVar(off, "no-project", false, "leave out "+project.Name+" of this directory and those above it, and your own policy.yaml")
}

// Trusted opens the record of the project files that the person trusts.
func (l *Launcher) Trusted() project.Store {
	dir, err := l.recordsDir()
	if err != nil {
		return project.Store{} // nothing is trusted, and nothing can be
	}
	return project.Store{Dir: filepath.Join(dir, "trust")}
}

// OwnPolicy is where the user's own policy file is; "": nowhere.
func (l *Launcher) OwnPolicy() string {
	config := l.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		if config = l.Getenv("HOME"); !filepath.IsAbs(config) {
			return ""
		}
		config = filepath.Join(config, ".config")
	}
	return filepath.Join(config, "egressd", "policy.yaml")
}

// FindProject reports the policy files that count in dir without being named, and the
// documents of what counts.
func (l *Launcher) FindProject(dir string) (found []*project.File, docs []*policy.Document, err error) {
	found, err = project.Find(project.Places{Dir: dir, Config: l.OwnPolicy(), Trust: l.Trusted()})
	for _, f := range found {
		docs = append(docs, f.Counts)
	}
	return found, docs, err
}

// here is the directory of this machine that a run is about: "", the one that launch
// started in, if the program starts in a home directory elsewhere.
func (o *Options) here() string {
	if d := o.Program.Dir; o.Tier == microvm.Tier && (d == "~" || strings.HasPrefix(d, "~/")) {
		return ""
	}
	return o.Program.Dir
}

// findProject takes the policy files of the working directory into the run, and says so.
func (s *session) findProject() (err error) {
	if s.opts.NoProject {
		return nil
	}
	if s.found, s.opts.Policy.Found, err = s.FindProject(s.opts.here()); err != nil {
		return err
	}
	for _, f := range s.found {
		if !s.opts.Report.Quiet {
			s.Say("%s: %s\n", s.Name, FoundText(f))
		}
	}
	return nil
}

// FoundText says in one line how far f counts, and what to type.
func FoundText(f *project.File) string {
	path := cli.Safe(f.Path)
	switch f.State {
	case project.Trusted:
		return path + " counts: you trust it (--no-project goes without it)"
	case project.Changed:
		return path + " has changed since you trusted it: of it only deny, files: hide and limits count. Look at it, and: launch trust " + cli.Quote(f.Path)
	case project.Untrusted:
	}
	return path + " is not trusted: of it only deny, files: hide and limits count. Look at it, and: launch trust " + cli.Quote(f.Path)
}

// foundLines is what the record says of found.
func foundLines(found []*project.File) (lines []string) {
	for _, f := range found {
		lines = append(lines, string(f.State)+" "+f.Digest+" "+f.Path)
	}
	return lines
}

// Trust trusts the project file at path as it is now; show gets it first.
func (l *Launcher) Trust(path string, show func(*project.File) error) error {
	path, err := realPath(path)
	if err != nil {
		return err
	}
	f, err := project.Read(path)
	if err == nil {
		err = show(f)
	}
	if err != nil {
		return err
	}
	return l.Trusted().Add(f)
}

// Distrust takes trust in the file at path away, which need not be there any more.
func (l *Launcher) Distrust(path string) error {
	if real, err := realPath(path); err == nil {
		path = real
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = l.Trusted().Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(cli.Safe(path) + " is not trusted: launch trust --list lists what is")
	}
	return err
}

// realPath is path without links.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// savesTo is the policy file that a lasting answer is saved to: the nearest project file
// if the person trusts it, else the user's own, which need not be there. "": none, since
// it is not trusted, was left out, or would belong to another user.
func (s *session) savesTo() string {
	if s.opts.NoProject || s.opts.Program.User != "" || s.Getenv("SUDO_UID") != "" || s.Trusted().Dir == "" {
		return ""
	}
	own := s.OwnPolicy()
	for _, f := range s.found {
		if f.State == project.Trusted {
			return f.Path
		}
		if real, err := realPath(own); err == nil && real == f.Path {
			return ""
		}
	}
	base := filepath.Dir(filepath.Dir(own)) // ~/.config, which may have to be made, in a home that is there
	if _, err := os.Stat(filepath.Dir(base)); own == "" || err != nil {
		return ""
	}
	return own
}
