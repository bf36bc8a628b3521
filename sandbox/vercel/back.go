package vercel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"egressd/event"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/stage"
)

// Changes is what came back.
type Changes struct {
	stage.Report
	Workspace string
	Aside     string // the directory of what came back for conflicts; "" if none
}

// bringBack brings what the program changed into the workspace.
func (r *run) bringBack(ctx context.Context) error {
	if r.disk.tree == nil {
		return nil
	}
	aside, err := os.MkdirTemp("", "launch-conflicts-")
	if err != nil {
		return err
	}
	report, err := r.changes(ctx, aside)
	if os.Remove(aside) == nil { // it is empty
		aside = ""
	}
	for _, part := range []struct {
		what  event.Change
		names []string
	}{{event.Added, report.Added}, {event.Modified, report.Changed}, {event.Deleted, report.Deleted}} {
		for _, name := range part.names {
			err = errors.Join(err, r.record(&event.FileChanged{Path: "/" + name, Change: part.what}))
		}
	}
	if r.Changed != nil {
		r.Changed(Changes{Report: report, Workspace: r.place.root, Aside: aside})
	}
	if err != nil {
		return err
	}
	if err := r.rememberBack(ctx, &report); err != nil && !api.IsGone(err) {
		r.say("the next run sends everything again: %v", err)
	}
	return nil
}

func (r *run) record(body event.Body) error {
	if r.Events == nil {
		return nil
	}
	return r.Events.Emit(event.Event{Session: r.Session, Isolation: r.Isolation(), Body: body})
}

// pack packs the workspace there into a file there.
func (r *run) pack(ctx context.Context) (name string, err error) {
	name = r.temporary("back.tgz")
	args := []string{"-C", r.session.workdir, "-czf", name}
	for _, skip := range r.disk.tree.Skips() {
		args = append(args, "--exclude="+skip)
	}
	request := api.CommandRequest{Command: "tar", Args: append(args, ".")}
	_, err = r.ours(ctx, request)
	var failed *commandError
	switch {
	case !errors.As(err, &failed):
		return name, err
	case failed.code == 1:
		return name, nil // something there still writes
	}
	// A file that the user there may not read must not look deleted.
	name = r.temporary("back-all.tgz")
	request.Args[3], request.Sudo, r.disk.sudo = name, true, true
	if _, e := r.ours(ctx, request); !errors.As(e, &failed) || failed.code != 1 {
		if e != nil {
			return "", errors.Join(err, e)
		}
	}
	return name, nil
}

// Bounds of fetching.
const (
	fetchTries = 3
	fetchWait  = 500 * time.Millisecond
	fetchLater = time.Minute // a longer Retry-After is not waited for
)

// mirror fetches the archive and brings its changes into the workspace.
func (r *run) mirror(ctx context.Context, name, aside string) (report stage.Report, err error) {
	err = r.fetched(ctx, name, maxArchive, func(f *os.File) (err error) {
		report, err = r.disk.tree.Mirror(ctx, f, aside)
		return err
	})
	return report, err
}

// fetched fetches a file of ours for use. One that did not come whole is fetched
// again.
func (r *run) fetched(ctx context.Context, name string, most int64, use func(f *os.File) error) error {
	for try := 1; ; try++ {
		f, err := r.fetch(ctx, name, most)
		if err == nil {
			err = use(f)
			f.Close()
			if torn := (*stage.UnreadableError)(nil); !errors.As(err, &torn) {
				return err
			}
		}
		wait := max(time.Duration(try)*fetchWait, api.Later(err))
		if try == fetchTries || api.IsGone(err) || wait > fetchLater {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// fetch downloads at most so many bytes into an unlinked local file.
func (r *run) fetch(ctx context.Context, name string, most int64) (*os.File, error) {
	f, err := os.CreateTemp("", "launch-")
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.Remove(f.Name()), r.download(ctx, name, f, most))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// maxArchive bounds what is fetched.
const maxArchive = 16 << 30

func (r *run) download(ctx context.Context, name string, to io.Writer, most int64) error {
	from, err := r.Client.ReadFile(ctx, r.session.id, name, "")
	if err != nil {
		return err
	}
	n, err := io.Copy(&counting{to: to, tell: func(n int64) { r.progress("fetching", 0, n, 0) }}, io.LimitReader(from, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return errors.Join(err, from.Close())
}

// counting reports how much was written.
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
