package vercel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/stage"
)

// send takes the workspace into the sandbox.
func (r *run) send(ctx context.Context) error {
	if err := r.must(ctx, "mkdir", "-p", path.Join(r.workdir, r.place.dir)); err != nil {
		return err
	}
	if r.ownSource() {
		return nil
	}
	c := stage.Config{Dir: r.place.root, All: r.All, Progress: r.back()}
	if r.Known != nil {
		c.Known = r.Known(r.place.root)
	}
	tree, err := stage.Scan(ctx, c)
	if err != nil {
		return err
	}
	r.tree = tree
	if r.reused {
		if err := r.sweep(ctx); err != nil {
			return fmt.Errorf("what is gone here: %w", err)
		}
	}
	all := tree.Entries()
	r.sending = &meter{run: r}
	for _, e := range all {
		if e.Mode.IsRegular() {
			r.sending.total++
		}
	}
	if err := r.Client.WriteFiles(ctx, r.session, r.files(all), nil); err != nil {
		return err
	}
	return r.sendOthers(ctx, all)
}

// meter tells how much was read for sending. What is sent once more counts again,
// up to the whole.
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
	if r.tree != nil {
		r.tree.Close()
	}
}

// files are the regular files of the tree.
func (r *run) files(all []stage.Entry) iter.Seq[api.File] {
	return func(yield func(api.File) bool) {
		for _, e := range all {
			if !e.Mode.IsRegular() {
				continue
			}
			f := api.File{Path: path.Join(r.workdir, e.Path), Mode: e.Mode.Perm(), Size: e.Size, Open: func() (io.ReadCloser, error) {
				f, err := r.tree.Open(e.Path)
				return metered{f, r.sending}, err
			}}
			if !yield(f) {
				return
			}
		}
	}
}

// sendOthers makes links and empty directories, which cannot be written as
// files, by two commands that read their names from files.
func (r *run) sendOthers(ctx context.Context, all []stage.Entry) error {
	var dirs, links []string
	for _, e := range all {
		at := path.Join(r.workdir, e.Path)
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
	if err := r.forEach(ctx, dirs, `xargs -0 mkdir -p -- <"$0"`); err != nil {
		return err
	}
	return r.forEach(ctx, links, `xargs -0 -n 2 ln -sfn -- <"$0"`)
}

// forEach lets script read names from the file $0, each followed by a NUL.
func (r *run) forEach(ctx context.Context, names []string, script string) error {
	if len(names) == 0 {
		return nil
	}
	list := r.temporary("list")
	data := strings.Join(names, "\x00") + "\x00"
	if err := r.writeFile(ctx, list, []byte(data)); err != nil {
		return err
	}
	return r.must(ctx, "sh", "-c", script+`; code=$?; rm -f "$0"; exit $code`, list)
}

// temporary is the name of a file of ours in the sandbox.
func (r *run) temporary(what string) string {
	return "/tmp/.launch-" + strings.ToLower(r.Session) + "-" + what
}

func (r *run) writeFile(ctx context.Context, name string, data []byte) error {
	f := api.File{Path: name, Mode: 0o600, Size: int64(len(data)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
	return r.Client.WriteFiles(ctx, r.session, slices.Values([]api.File{f}), nil)
}

// maxWords bounds what is kept of what a command of ours prints.
const maxWords = 4 << 10

// must runs a command of ours and makes anything but success an error.
func (r *run) must(ctx context.Context, name string, args ...string) error {
	var words bytes.Buffer
	ended, err := r.Client.Run(ctx, r.session, api.CommandRequest{Command: name, Args: args}, nil, func(_ string, data []byte) error {
		words.Write(data[:min(len(data), maxWords-words.Len())])
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if code := int(*ended.ExitCode); code != 0 {
		return fmt.Errorf("%s: exit status %d: %s", name, code, strings.TrimSpace(words.String()))
	}
	return nil
}

// findScript lists all files there but those that do not travel.
func findScript(skips []string) string {
	var names []string
	for _, name := range skips {
		names = append(names, "-name "+name)
	}
	return `cd "$1" && find . -mindepth 1 \( ` + strings.Join(names, " -o ") + ` \) -prune -o \( -type f -o -type l \) -print0 >"$0"`
}

// maxList bounds the list of a sandbox's files.
const maxList = 256 << 20

// sweep deletes files of a sandbox that was there before and that are gone here:
// what came back after the last run is here, so what is not was deleted.
func (r *run) sweep(ctx context.Context) error {
	list := r.temporary("found")
	if err := r.must(ctx, "sh", "-c", findScript(r.tree.Skips()), list, r.workdir); err != nil {
		return err
	}
	f, err := r.Client.ReadFile(ctx, r.session, list, "")
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxList+1))
	if err = errors.Join(err, f.Close()); err != nil || len(data) > maxList {
		return errors.Join(err, errors.New("the list of files there is too long"))
	}
	root, err := os.OpenRoot(r.place.root)
	if err != nil {
		return err
	}
	defer root.Close()
	var gone []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		name = strings.TrimPrefix(name, "./")
		if name == "" || !fs.ValidPath(name) {
			continue
		}
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, path.Join(r.workdir, name))
		}
	}
	return errors.Join(r.forEach(ctx, gone, `xargs -0 rm -f -- <"$0"`), r.must(ctx, "rm", "-f", list))
}
