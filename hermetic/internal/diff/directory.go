package diff

import (
	"io/fs"
	"slices"

	"egressd/hermetic/internal/shell/pattern"
)

// directories compares two of them, name by name; one may be missing with -N.
func (d *differ) directories(x, y file) int {
	d.dirs = true
	names := map[string]int{}
	for i, f := range []file{x, y} {
		if f.info == nil {
			continue
		}
		list, err := d.FS.ReadDir(d.Path(f.name))
		if err != nil {
			d.Complain("%s: %s", f.name, Reason(err))
			return 2
		}
		for _, e := range list {
			if !d.excluded(e) && e.Name() >= d.startAt {
				names[e.Name()] |= 1 << i
			}
		}
	}
	d.startAt = ""
	all := make([]string, 0, len(names))
	for n := range names {
		all = append(all, n)
	}
	slices.Sort(all)
	status := 0
	for _, n := range all {
		if d.Ctx.Err() != nil {
			return 2
		}
		status = max(status, d.entry(x, y, n, names[n]))
	}
	return status
}

func (d *differ) excluded(e fs.DirEntry) bool {
	return slices.ContainsFunc(d.excludes, func(p *pattern.Pattern) bool { return p.Match(e.Name()) })
}

// entry compares what both directories have under one name; in tells which do.
func (d *differ) entry(x, y file, name string, in int) int {
	switch {
	case in == 1 && !d.newFile:
		d.say("Only in %s: %s\n", x.name, name)
		return 1
	case in == 2 && !d.newFile && !d.newFirst:
		d.say("Only in %s: %s\n", y.name, name)
		return 1
	}
	a, b := d.look(under(x.name, name)), d.look(under(y.name, name))
	return d.files(a, b, true)
}
