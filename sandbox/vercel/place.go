package vercel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
)

// defaultWorkdir is where the workspace goes, below the session's directory.
const defaultWorkdir = "workspace"

// place is the workspace here, and where in it the program starts.
type place struct {
	root string // of this machine
	dir  string // below it, "." or "a/b"
	home string // in its stead: "~" or "~/a", of the user there; "": dir
}

// place finds them: the workspace is the launcher's working directory, and dir
// below it is where the program starts; dir elsewhere is the workspace itself.
func (b *Backend) place(dir string) (place, error) {
	here, err := resolved(".")
	if err != nil {
		return place{}, fmt.Errorf("working directory: %w", err)
	}
	p := place{root: here, dir: "."}
	if atHome(dir) {
		p.home, dir = dir, ""
	}
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

// atHome reports whether name begins with the home directory there.
func atHome(name string) bool { return name == "~" || strings.HasPrefix(name, "~/") }

// absolute is name in the session, with its user's home directory for "~". A name
// that has none is left as it is.
func (r *run) absolute(ctx context.Context, name string) (string, error) {
	if !atHome(name) {
		return name, nil
	}
	home, err := r.ours(ctx, api.CommandRequest{Command: "sh", Args: []string{"-c", `printf %s "$HOME"`}})
	if err == nil && !path.IsAbs(home) {
		err = fmt.Errorf("the sandbox does not say where its home directory is: %q", home)
	}
	return path.Join(home, strings.TrimPrefix(name, "~")), err
}

// start is the directory that the program starts in.
func (r *run) start(ctx context.Context) (string, error) {
	if r.place.home == "" {
		return path.Join(r.session.workdir, r.place.dir), nil
	}
	dir, err := r.absolute(ctx, r.place.home)
	if err == nil {
		_, err = r.ours(ctx, api.CommandRequest{Command: "mkdir", Args: []string{"-p", "--", dir}})
	}
	return dir, err
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
	case !strings.HasPrefix(b.Workdir, "/") && !strings.HasPrefix(b.Workdir, "~/") || strings.ContainsRune(b.Workdir, 0):
		return unable(fmt.Sprintf("the working directory must be an absolute VM path: %s", b.Workdir), "")
	case strings.Trim(strings.TrimPrefix(b.Workdir, "~"), "/") == "":
		return unable("the working directory would be the whole VM, or all of a home, which would come back", "name a directory: --vercel-workdir /vercel/app")
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
