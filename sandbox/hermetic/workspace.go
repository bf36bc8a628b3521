package hermetic

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"egressd/sandbox"
)

// workspace is the directory that the script sees as "/".
type workspace struct {
	root string // of the host, without links
	dir  string // where the script starts, inside
}

// findWorkspace is the launcher's working directory; dir below it is where the
// script starts, and dir elsewhere is the workspace itself.
func findWorkspace(dir string) (workspace, error) {
	here, err := resolved(".")
	if err != nil {
		return workspace{}, fmt.Errorf("working directory: %w", err)
	}
	w := workspace{root: here, dir: "/"}
	if dir != "" {
		there, err := resolved(dir)
		if err != nil {
			return w, fmt.Errorf("working directory: %w", err)
		}
		if rel, err := filepath.Rel(here, there); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			w.dir = filepath.Join("/", rel)
		} else {
			w.root = there
		}
	}
	return w, w.check()
}

func resolved(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// check refuses directories that are the machine rather than somebody's work.
//
// Threat: with "/" for a workspace the script's "/proc/1/environ" is the host's
// -> refused, with what the kernel makes of files; so is a workspace that such a
// file system is mounted in (see mounted). Left over: whatever else lies in the
// directory that the person chose.
func (w workspace) check() error {
	var st syscall.Stat_t
	if err := syscall.Stat(w.root, &st); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return fmt.Errorf("working directory %s: not a directory", w.root)
	}
	for _, p := range []string{"/proc", "/sys", "/dev", "/"} {
		if w.root == p || p != "/" && strings.HasPrefix(w.root, p+"/") && !strings.HasPrefix(w.root, "/dev/shm/") {
			return &sandbox.CapabilityError{
				Isolation: isolation,
				What:      "the workspace would be " + w.root + ", which is the machine itself",
				Fix:       "start in a directory of your own, or name one with --workdir",
			}
		}
	}
	return nil
}

// inside reports the name that path of the host has inside, "" when it has none.
func (w workspace) inside(path string) string {
	dir, err := resolved(filepath.Dir(path))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(w.root, filepath.Join(dir, filepath.Base(path)))
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return ""
	}
	return filepath.Join("/", rel)
}

// repository is the name inside of the repository of a workspace whose .git is a
// link, or a file that says where it is; "" when it is elsewhere, or .git itself.
//
// Threat: "git init --separate-git-dir", or a tool that links .git, keeps hooks
// and configuration in the workspace under another name -> protected as .git is.
// Left over: directories below the workspace that have such a repository.
func (w workspace) repository() string {
	at := filepath.Join(w.root, ".git")
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return ""
	}
	if text := beginning(real); strings.HasPrefix(text, "gitdir: ") {
		dir, _, _ := strings.Cut(strings.TrimPrefix(text, "gitdir: "), "\n")
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(real), dir)
		}
		if real, err = filepath.EvalSymlinks(dir); err != nil {
			return ""
		}
	}
	if name := w.inside(real); name != "/" && name != "/.git" {
		return name
	}
	return ""
}

// beginning is the first page of a regular file, "" of anything else.
func beginning(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO does not hold it up
	if err != nil {
		return ""
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || !i.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return ""
	}
	return string(text)
}
