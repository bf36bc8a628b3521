package vercel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"egressd/event"
	"egressd/sandbox/vercel/stage"
)

// Changes is what came back.
type Changes struct {
	stage.Report
	Workspace string
	Aside     string // where what came back for conflicts was put; "" nowhere
}

// bringBack brings what the program changed into the workspace.
func (r *run) bringBack(ctx context.Context) error {
	if r.tree == nil {
		return nil
	}
	archive, err := r.fetch(ctx)
	if err != nil {
		return err
	}
	defer archive.Close()
	aside, err := os.MkdirTemp("", "launch-conflicts-")
	if err != nil {
		return err
	}
	report, err := r.tree.Mirror(ctx, archive, aside)
	if os.Remove(aside) == nil { // it is empty
		aside = ""
	}
	for _, part := range []struct {
		what  string
		names []string
	}{{"added", report.Added}, {"modified", report.Changed}, {"deleted", report.Deleted}} {
		for _, name := range part.names {
			err = errors.Join(err, r.record(event.Event{Type: event.FileChanged, Path: "/" + name, Change: part.what}))
		}
	}
	if r.Changed != nil {
		r.Changed(Changes{Report: report, Workspace: r.place.root, Aside: aside})
	}
	return err
}

func (r *run) record(e event.Event) error {
	if r.Events == nil {
		return nil
	}
	e.Session, e.Isolation = r.Session, r.Isolation()
	return r.Events.Emit(e)
}

// fetch packs the workspace there and takes the archive into a file here that
// has no name.
func (r *run) fetch(ctx context.Context) (*os.File, error) {
	name := r.temporary("back.tgz")
	args := []string{"-C", r.workdir, "-czf", name}
	for _, skip := range r.tree.Skips() {
		args = append(args, "--exclude="+skip)
	}
	if err := r.must(ctx, "tar", append(args, ".")...); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "launch-")
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.Remove(f.Name()), r.download(ctx, name, f))
	if err == nil && r.Name != "" {
		err = r.must(ctx, "rm", "-f", name) // of a sandbox that stays
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// maxArchive bounds what is fetched.
const maxArchive = 16 << 30

func (r *run) download(ctx context.Context, name string, to io.Writer) error {
	from, err := r.Client.ReadFile(ctx, r.session, name, "")
	if err != nil {
		return err
	}
	n, err := io.Copy(&counting{to: to, tell: func(n int64) { r.progress("fetching", 0, n, 0) }}, io.LimitReader(from, maxArchive+1))
	if err == nil && n > maxArchive {
		err = fmt.Errorf("more than %d bytes", int64(maxArchive))
	}
	return errors.Join(err, from.Close())
}

// counting tells how much was written.
type counting struct {
	to   io.Writer
	n    int64
	tell func(n int64)
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	c.tell(c.n)
	return n, err
}
