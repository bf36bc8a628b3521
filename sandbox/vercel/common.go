package vercel

import (
	"context"
	"crypto/rand"
	"maps"
	"path"
	"strings"

	"egressd/sandbox/vercel/stage"
)

// What a disk that stays and the workspace have in common is remembered here,
// under a stamp that is written to that disk: where the stamps differ (another
// machine was there, an older snapshot was restored) nothing is known. What is
// remembered under one stamp is never more than the disk had when the stamp was
// written: what is missing there later was deleted there.

// stampName is the stamp's file, beside the workspace.
const stampName = ".launch-stamp"

// stampFile reports where the stamp is; "" where nothing is remembered.
func (r *run) stampFile() string {
	if r.Synced == nil || r.Name == "" && r.Task == "" || r.workdir == "/" || strings.HasPrefix(r.cwd+"/", r.workdir+"/") {
		return ""
	}
	return path.Join(r.cwd, stampName)
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
	gone, dirs, err := r.tree.Compare(ctx, marks)
	if err != nil {
		return err
	}
	if len(gone)+len(dirs) == 0 && len(r.tree.Entries()) == 0 {
		r.stamp = stamp
		return nil
	}
	// From here on the disk may lack what is deleted or sent anew.
	if err := r.Synced.Save(r.place.root, stamp, r.tree.There()); err != nil {
		return err
	}
	below := func(names []string) (all []string) {
		for _, name := range names {
			all = append(all, path.Join(r.workdir, name))
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
	r.stamp = stamp
	if err := r.Synced.Save(r.place.root, stamp, marks); err != nil {
		r.say("what sandbox and workspace have in common is not remembered: %v", err)
	}
	return nil
}

// rememberBack notes what the disk had when it was brought back.
func (r *run) rememberBack(ctx context.Context, report *stage.Report) error {
	if r.stamp != "" && maps.Equal(report.There, r.tree.Marks()) {
		return nil
	}
	return r.remember(ctx, report.There)
}
