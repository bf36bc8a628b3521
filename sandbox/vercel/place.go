package vercel

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"egressd/sandbox"
)

// defaultWorkdir is where the workspace goes, below the session's directory.
const defaultWorkdir = "workspace"

// place is the workspace here, and where in it the program starts.
type place struct {
	root string // of this machine
	dir  string // below it, "." or "a/b"
}

// place finds them: the workspace is the launcher's working directory, and dir
// below it is where the program starts; dir elsewhere is the workspace itself.
func (b *Backend) place(dir string) (place, error) {
	here, err := resolved(".")
	if err != nil {
		return place{}, fmt.Errorf("working directory: %w", err)
	}
	p := place{root: here, dir: "."}
	if dir != "" {
		there, err := resolved(dir)
		if err != nil {
			return p, fmt.Errorf("working directory: %w", err)
		}
		if rel, err := filepath.Rel(here, there); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			p.dir = filepath.ToSlash(rel)
		} else {
			p.root = there
		}
	}
	if p.root == "/" {
		return p, unable("the workspace would be the whole machine", "start in a directory of your own, or name one with --workdir")
	}
	return p, nil
}

func resolved(dir string) (string, error) {
	name, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// checkWorkdir validates --vercel-workdir.
func (b *Backend) checkWorkdir() error {
	switch {
	case b.Workdir == "":
	case !strings.HasPrefix(b.Workdir, "/") || strings.ContainsRune(b.Workdir, 0):
		return unable(fmt.Sprintf("the working directory must be an absolute VM path: %s", b.Workdir), "")
	case strings.Trim(b.Workdir, "/") == "":
		return unable("the working directory would be the whole VM, which would come back", "name a directory: --vercel-workdir /vercel/app")
	case strings.Contains(b.Workdir+"/", "/../"):
		return unable(fmt.Sprintf("the working directory must not contain '..': %s", b.Workdir), "")
	}
	return nil
}

// workdir is the workspace's directory in a session whose own is cwd.
func (b *Backend) workdir(cwd string) string {
	switch {
	case b.Workdir != "":
		if w := strings.TrimRight(b.Workdir, "/"); w != "" {
			return w
		}
		return "/"
	case b.ownSource():
		return cwd // where the service unpacks it
	}
	return path.Join("/", cwd, defaultWorkdir)
}

// ownSource reports whether the disk begins with files from elsewhere, so that
// the workspace here stays out of it.
func (b *Backend) ownSource() bool {
	return b.Source != nil && b.Source.Type != "snapshot"
}

// commandLine is what spec runs, as a program and its arguments.
func commandLine(spec sandbox.Spec) ([]string, error) {
	switch {
	case len(spec.Argv) > 0 && spec.Script != "":
		return nil, errors.New("a run has a program or a script, not both")
	case len(spec.Argv) > 0 && spec.Argv[0] != "":
		return spec.Argv, nil
	case spec.Script == "":
		return nil, errors.New("there is nothing to run")
	}
	switch spec.Shell {
	case "", "sh":
		return []string{"sh", "-c", spec.Script}, nil
	case "bash":
		return []string{"bash", "-c", spec.Script}, nil
	}
	return nil, fmt.Errorf("shell %q: sh or bash", spec.Shell)
}
