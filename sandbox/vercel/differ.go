package vercel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/stage"
)

// listFrom is how many bytes a workspace must have before what is there is listed:
// a smaller one is fetched whole, which takes fewer requests.
const listFrom = 64 << 10

// maxList bounds a list of what is there, in bytes, compressed.
const maxList = 64 << 20

// listScript writes what the directory $1 holds to the file $0, see stage.List.
// What follows $2 names to find what to pass over. Files of $2 bytes are not summed.
const listScript = `out=$0 dir=$1 most=$2 && shift 2 && cd -- "$dir" &&
find . "$@" -printf '%y %m %s %P\0%l\0' >"$out.1" &&
find . "$@" -type f -size "-${most}c" -print0 >"$out.2" &&
xargs -0 -r sha256sum -z -- <"$out.2" >"$out.3" &&
{ cat "$out.1" && printf '\0' && cat "$out.3" && printf 'end\0'; } | gzip >"$out"`

// passOver tells find what to pass over, at any depth.
func passOver(skips []string) (args []string) {
	if len(skips) == 0 {
		return nil
	}
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	for _, skip := range skips {
		args = append(args, "-o", "-iname", plain.Replace(skip))
	}
	args[0] = "("
	return append(args, ")", "-prune", "-o")
}

// changes brings what differs there into the workspace. What cannot be listed
// there (find or sha256sum are not GNU's, files are root's) is fetched whole.
func (r *run) changes(ctx context.Context, aside string) (stage.Report, error) {
	if _, bytes := r.disk.tree.Size(); bytes >= listFrom {
		l, err := r.list(ctx)
		if err == nil {
			report, err := r.difference(ctx, l, aside)
			if !whole(err) {
				return report, err
			}
		} else if !whole(err) {
			return stage.Report{}, err
		}
	}
	name, err := r.pack(ctx)
	if err != nil {
		return stage.Report{}, err
	}
	return r.mirror(ctx, name, aside)
}

// whole reports an error after which the whole workspace is fetched: a command there
// failed, the list is not one, or the workspace here changed meanwhile.
func whole(err error) bool {
	var failed *commandError
	var unreadable *stage.UnreadableError
	return errors.As(err, &failed) || errors.As(err, &unreadable) || errors.Is(err, stage.ErrMoved)
}

// list lists what is there.
func (r *run) list(ctx context.Context) (l *stage.Listing, err error) {
	name, tree := r.temporary("list.gz"), r.disk.tree
	args := []string{"-c", listScript, name, r.session.workdir, fmt.Sprint(tree.MaxBytes() + 1)}
	if _, err := r.ours(ctx, api.CommandRequest{Command: "sh", Args: append(args, passOver(tree.Skips())...)}); err != nil {
		return nil, err
	}
	err = r.fetched(ctx, name, maxList, func(f *os.File) (err error) {
		l, err = tree.List(ctx, f)
		return err
	})
	return l, err
}

// difference fetches what the list says is missing here.
func (r *run) difference(ctx context.Context, l *stage.Listing, aside string) (report stage.Report, err error) {
	tree := r.disk.tree
	if len(l.Missing()) == 0 {
		return tree.MirrorListed(ctx, l, nil, aside)
	}
	var names strings.Builder
	names.WriteString(".\x00")
	for _, name := range l.Missing() {
		names.WriteString("./" + name + "\x00")
	}
	list, archive := r.temporary("missing"), r.temporary("missing.tgz")
	if err := r.writeFile(ctx, list, names.String()); err != nil {
		return report, err
	}
	request := api.CommandRequest{Command: "tar", Args: []string{"-C", r.session.workdir, "--no-recursion", "--no-unquote", "--null", "-czf", archive, "-T", list}}
	var failed *commandError
	if _, err := r.ours(ctx, request); err != nil && (!errors.As(err, &failed) || failed.code != 1) { // 1: something there still writes
		return report, err
	}
	err = r.fetched(ctx, archive, maxArchive, func(f *os.File) (err error) {
		report, err = tree.MirrorListed(ctx, l, f, aside)
		return err
	})
	return report, err
}
