package vercel

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"path"
	"strings"

	"egressd/sandbox/vercel/stage"
)

// What a disk that stays and the workspace have in common is remembered here,
// under a stamp that is written to that disk: if the stamps differ (another
// machine used it, an older snapshot was restored) nothing is known. What is
// remembered under one stamp is never more than the disk had when the stamp was
// written: what is missing there later was deleted there.

// stampName is the stamp's file, beside the workspace.
const stampName = ".launch-stamp"

// stampFile returns the path of the stamp; "" if nothing is remembered.
func (r *run) stampFile() string {
	if r.Synced == nil {
		return ""
	}
	return r.beside(stampName)
}

// beside is the path of a file of ours beside the workspace on a disk that stays; "" if
// there is no such place.
func (r *run) beside(name string) string {
	if r.Name == "" && r.Task == "" || r.session.workdir == "/" || strings.HasPrefix(r.session.cwd+"/", r.session.workdir+"/") {
		return ""
	}
	return path.Join(r.session.cwd, name)
}

// compare leaves out of the tree what is there already, and deletes there what
// is gone here. stamp is what the disk's says.
func (r *run) compare(ctx context.Context, stamp string) error {
	if stamp == "" || r.stampFile() == "" {
		return nil
	}
	known, marks, err := r.Synced.Load(r.place.root)
	if err != nil {
		r.say("what sandbox and workspace have in common is not known, so everything is sent: %v", err)
		return nil
	}
	if known != stamp {
		return nil
	}
	gone, dirs, err := r.disk.tree.Compare(ctx, marks)
	if err != nil {
		return err
	}
	if marks[dirty] != "" {
		if err := r.restore(ctx); err != nil {
			return err
		}
	}
	if len(gone)+len(dirs) == 0 && len(r.disk.tree.Entries()) == 0 {
		r.disk.stamp = stamp
		return nil
	}
	// From here on the disk may lack what is deleted or sent anew.
	if err := r.Synced.Save(r.place.root, stamp, r.disk.tree.There()); err != nil {
		return err
	}
	below := func(names []string) (all []string) {
		for _, name := range names {
			all = append(all, path.Join(r.session.workdir, name))
		}
		return all
	}
	// What has become something else there meanwhile stays, and comes back.
	return r.forEach(ctx, `{ xargs -0 -r rm -f -- <"$0"; xargs -0 -r rmdir -- <"$1"; } 2>/dev/null; :`, below(gone), below(dirs))
}

// remember notes what the disk has, under a new stamp. The error is that of
// writing the stamp.
func (r *run) remember(ctx context.Context, marks map[string]string) error {
	file := r.stampFile()
	if file == "" {
		return nil
	}
	stamp := rand.Text()
	if err := r.writeFile(ctx, file, stamp); err != nil {
		return err
	}
	r.disk.stamp = stamp
	if err := r.Synced.Save(r.place.root, stamp, marks); err != nil {
		r.say("what sandbox and workspace have in common is not remembered: %v", err)
	}
	return nil
}

// dirty is a mark for no path: a program has run since, and what it did has
// not been brought back.
const dirty = ""

// markDirty records that a program is about to run.
func (r *run) markDirty() error {
	if r.disk.stamp == "" {
		return nil
	}
	marks := r.disk.tree.Marks()
	marks[dirty] = "yes"
	return r.Synced.Save(r.place.root, r.disk.stamp, marks)
}

// missingScript writes to the file $1 those names in the file $0 that are not
// there.
const missingScript = `xargs -0 -r sh -c 'for f; do [ -e "$f" ] || [ -L "$f" ] || printf "%s\\0" "$f"; done' sh <"$0" >"$1"`

// restore lets files be sent that the disk lacks because of a run that was given
// up: what is brought back of this one must not delete them here.
func (r *run) restore(ctx context.Context) error {
	var names []string
	for name := range r.disk.tree.There() {
		names = append(names, path.Join(r.session.workdir, name))
	}
	if err := r.forEach(ctx, missingScript, names, nil); err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	f, err := r.Client.ReadFile(ctx, r.session.id, r.temporary("list1"), "")
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxMissing+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if len(data) > maxMissing {
		return errors.New("too many files are missing there: launch sandbox rm, and begin anew")
	}
	var lost []string
	for name := range strings.SplitSeq(string(data), "\x00") {
		lost = append(lost, strings.TrimPrefix(name, strings.TrimSuffix(r.session.workdir, "/")+"/"))
	}
	r.disk.tree.Lost(lost)
	return nil
}

// maxMissing bounds a list of names, in bytes.
const maxMissing = 256 << 20

// rememberBack notes what the disk had when it was brought back.
func (r *run) rememberBack(ctx context.Context, report *stage.Report) error {
	if r.disk.stamp != "" && maps.Equal(report.There, r.disk.tree.Marks()) {
		return r.Synced.Save(r.place.root, r.disk.stamp, report.There)
	}
	return r.remember(ctx, report.There)
}
