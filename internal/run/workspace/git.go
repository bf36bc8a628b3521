package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// gitTime bounds one call of git.
const gitTime = 10 * time.Minute

// Lengths of the names of objects: SHA-1 and SHA-256.
const (
	hexSHA1   = 40
	hexSHA256 = 64
)

// repo is a bare repository of ours in a private directory. It has no work tree, no
// hooks, and no configuration but that of git init.
type repo struct {
	dir   string // holds the repository and whatever belongs to it
	env   []string
	size  int    // of an object's name
	fsync string // what git syncs to the disk: none in what is thrown away, else all
}

// attributes take every conversion, driver and filter away that a .gitattributes asks
// for: bytes stay as they are.
const attributes = "* -text -ident !eol !filter !working-tree-encoding !diff !merge !whitespace\n"

// newRepo makes a repository for objects whose names have size characters. The caller
// closes it.
func newRepo(ctx context.Context, size int) (*repo, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("workspaces need git, which is not installed here: apt-get install git")
	}
	kind := "sha1"
	if size == hexSHA256 {
		kind = "sha256"
	}
	dir, err := os.MkdirTemp("", "launch-workspace-")
	if err != nil {
		return nil, err
	}
	git := filepath.Join(dir, "git")
	r := &repo{dir: dir, size: size, fsync: "none", env: []string{
		"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "LC_ALL=C", "TZ=UTC",
		"GIT_DIR=" + git, "GIT_INDEX_FILE=" + filepath.Join(dir, "index"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_AUTHOR_NAME=warrant", "GIT_AUTHOR_EMAIL=warrant@localhost", "GIT_COMMITTER_NAME=warrant", "GIT_COMMITTER_EMAIL=warrant@localhost",
	}}
	_, err = r.git(ctx, nil, "init", "--quiet", "--bare", "--template=", "--object-format="+kind)
	if err == nil {
		err = os.MkdirAll(filepath.Join(git, "info"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(git, "info", "attributes"), []byte(attributes), 0o600)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// close removes the repository.
func (r *repo) close() {
	if r != nil {
		_ = os.RemoveAll(r.dir)
	}
}

// git runs git and reports what it prints, without the end of the last line.
func (r *repo) git(ctx context.Context, stdin []byte, args ...string) (string, error) {
	out, err := r.output(ctx, stdin, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// output runs git and reports what it prints.
func (r *repo) output(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "-c", "core.fsync=" + r.fsync}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, r.env, bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	out, complaint := &bounded{limit: maxText}, &bounded{limit: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, complaint
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], ctx.Err())
	case out.over:
		return nil, fmt.Errorf("git %s prints more than %d bytes", args[0], maxText)
	case err != nil:
		return nil, fmt.Errorf("git %s failed: %s", args[0], cmp(strings.TrimSpace(complaint.String()), err.Error()))
	}
	return out.Bytes(), nil
}

func cmp(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// bounded keeps the first bytes of what is written.
type bounded struct {
	bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); len(p) > room {
		b.over = true
		b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// object is a file, a link or a submodule in a tree. The zero object is none.
type object struct{ mode, name string }

// Modes of objects.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeLink       = "120000"
	modeSubmodule  = "160000"
)

// list lists what is in a tree, by path.
func (r *repo) list(ctx context.Context, tree string) (map[string]object, error) {
	text, err := r.output(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	all := map[string]object{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		what, path, _ := strings.Cut(line, "\t")
		f := strings.Fields(what)
		if len(f) != 3 {
			return nil, fmt.Errorf("git ls-tree prints %q", line)
		}
		if err := safePath(path); err != nil {
			return nil, err
		}
		if all[path] != (object{}) {
			return nil, fmt.Errorf("%q is in the tree twice", path)
		}
		all[path] = object{f[0], f[2]}
	}
	if len(all) > maxFiles {
		return nil, fmt.Errorf("more than %d files", maxFiles)
	}
	return all, nil
}

// contents reads objects, and hands each to use, in order.
func (r *repo) contents(ctx context.Context, names []string, use func(i int, data []byte) error) error {
	// In pieces, because what git prints is held in memory.
	const piece = 64
	for at := 0; at < len(names); at += piece {
		some := names[at:min(at+piece, len(names))]
		text, err := r.output(ctx, []byte(strings.Join(some, "\n")+"\n"), "cat-file", "--batch")
		if err != nil {
			return err
		}
		for i, name := range some {
			head, rest, ok := bytes.Cut(text, []byte{'\n'})
			f := strings.Fields(string(head))
			if !ok || len(f) != 3 || f[0] != name {
				return fmt.Errorf("object %s: %q", name, head)
			}
			size, err := strconv.Atoi(f[2])
			if err != nil || size < 0 || size >= len(rest) {
				return fmt.Errorf("object %s breaks off", name)
			}
			if err := use(at+i, rest[:size:size]); err != nil {
				return err
			}
			text = rest[size+1:]
		}
	}
	return nil
}

// isObject reports whether s is the name of an object.
func isObject(s string) bool {
	return (len(s) == hexSHA1 || len(s) == hexSHA256) && strings.Trim(s, "0123456789abcdef") == ""
}
