package vercel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/stage"
)

// send copies the workspace into the sandbox.
func (r *run) send(ctx context.Context) error {
	stamp, err := r.makeDir(ctx)
	if err != nil || r.ownSource() {
		return err
	}
	c := stage.Config{Dir: r.place.root, All: r.All, Progress: r.back()}
	if r.Known != nil {
		c.Known = r.Known(r.place.root)
	}
	if c.Decide, err = r.decide(); err != nil {
		return err
	}
	if r.disk.tree, err = stage.Scan(ctx, c); err != nil {
		return err
	}
	r.tellHeld()
	if err := r.compare(ctx, stamp); err != nil {
		return err
	}
	all := r.disk.tree.Entries()
	if len(all) == 0 && r.disk.stamp != "" {
		return nil // the sandbox has it already
	}
	r.disk.sending = &meter{run: r}
	for _, e := range all {
		if e.Mode.IsRegular() {
			r.disk.sending.total++
		}
	}
	if err := r.Client.WriteFiles(ctx, r.session.id, r.files(all), nil); err != nil {
		return err
	}
	if err := r.sendOthers(ctx, all); err != nil {
		return err
	}
	return r.remember(ctx, r.disk.tree.Marks())
}

// makeDirScript makes a directory, and prints the file $0.
const makeDirScript = `mkdir -p -- "$1" && { cat -- "$0" 2>/dev/null; :; }`

// takeDirScript makes the directory $0 and gives it and $2, in which it is, to
// the owner of $1.
const takeDirScript = `mkdir -p -- "$0" && chown "$(stat -c %u:%g -- "$1")" "$2" "$0"`

// makeDir makes the directory that the program starts in, and reports the stamp
// of a disk that was there before.
func (r *run) makeDir(ctx context.Context) (stamp string, err error) {
	dir := path.Join(r.session.workdir, r.place.dir)
	request := api.CommandRequest{Command: "mkdir", Args: []string{"-p", dir}}
	if file := r.stampFile(); file != "" && r.disk.reused {
		request = api.CommandRequest{Command: "sh", Args: []string{"-c", makeDirScript, file, dir}}
	}
	stamp, err = r.ours(ctx, request)
	var failed *commandError
	if r.Workdir == "" || !errors.As(err, &failed) {
		return stamp, err
	}
	// A directory elsewhere may be root's to make.
	request = api.CommandRequest{Command: "sh", Args: []string{"-c", takeDirScript, dir, r.session.cwd, r.session.workdir}, Sudo: true}
	if _, e := r.ours(ctx, request); e != nil {
		return "", errors.Join(err, e)
	}
	return "", nil
}

// meter reports how much was read for sending. What is sent again counts again,
// up to the total.
type meter struct {
	run   *run
	total int

	mu    sync.Mutex
	files int
	bytes int64
}

func (m *meter) add(files int, bytes int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files, m.bytes = min(m.files+files, m.total), m.bytes+bytes
	m.run.progress("sending", m.files, m.bytes, m.total)
}

// metered is a file on its way.
type metered struct {
	io.ReadCloser
	meter *meter
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.meter.add(0, int64(n))
	return n, err
}

func (m metered) Close() error {
	m.meter.add(1, 0)
	return m.ReadCloser.Close()
}

func (r *run) progress(stage string, files int, bytes int64, of int) {
	if r.Progress != nil {
		r.Progress(stage, files, bytes, of)
	}
}

func (r *run) back() func(files int, bytes int64) {
	return func(files int, bytes int64) { r.progress("bringing back", files, bytes, 0) }
}

func (r *run) closeTree() {
	if r.disk.tree != nil {
		r.disk.tree.Close()
	}
}

// files are the regular files of the tree.
func (r *run) files(all []stage.Entry) iter.Seq[api.File] {
	return func(yield func(api.File) bool) {
		for _, e := range all {
			if !e.Mode.IsRegular() {
				continue
			}
			f := api.File{Path: path.Join(r.session.workdir, e.Path), Mode: sentMode(e.Mode), Size: e.Size, Open: func() (io.ReadCloser, error) {
				f, err := r.disk.tree.Open(e.Path)
				return metered{f, r.disk.sending}, err
			}}
			if !yield(f) {
				return
			}
		}
	}
}

// sentMode is the mode of a file that is sent. ModeIrregular tells 0000 from no
// mode.
func sentMode(m fs.FileMode) fs.FileMode { return m.Perm() | fs.ModeIrregular }

// sendOthers makes links and empty directories, which cannot be written as
// files, by one command that reads their names from files.
func (r *run) sendOthers(ctx context.Context, all []stage.Entry) error {
	var dirs, links []string
	for _, e := range all {
		at := path.Join(r.session.workdir, e.Path)
		switch {
		case e.Mode.IsDir():
			dirs = append(dirs, at)
		case e.Mode&fs.ModeSymlink != 0:
			dirs = append(dirs, path.Dir(at))
			links = append(links, e.Link, at)
		}
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	return r.forEach(ctx, `xargs -0 -r mkdir -p -- <"$0" && xargs -0 -r -n 2 ln -sfT -- <"$1"`, dirs, links)
}

// forEach lets script read names from the files $0 and $1, each name followed by
// a NUL.
func (r *run) forEach(ctx context.Context, script string, first, second []string) error {
	if len(first)+len(second) == 0 {
		return nil
	}
	var lists []api.File
	args := []string{"-c", script}
	for i, names := range [][]string{first, second} {
		lists = append(lists, file(r.temporary(fmt.Sprintf("list%d", i)), strings.Join(append(names, ""), "\x00")))
		args = append(args, lists[i].Path)
	}
	if err := r.Client.WriteFiles(ctx, r.session.id, slices.Values(lists), nil); err != nil {
		return err
	}
	_, err := r.ours(ctx, api.CommandRequest{Command: "sh", Args: args})
	return err
}

// file is one of ours.
func file(name, text string) api.File {
	return api.File{Path: name, Mode: 0o600, Size: int64(len(text)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

func (r *run) writeFile(ctx context.Context, name, text string) error {
	return r.Client.WriteFiles(ctx, r.session.id, slices.Values([]api.File{file(name, text)}), nil)
}
