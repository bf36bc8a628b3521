package patch

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"egressd/hermetic/internal/diff"
)

// job is the patching of one file.
type job struct {
	*patcher
	f        *filePatch
	name     string // what is read
	out      string // what is written
	known    bool
	reversed bool
	mode     fs.FileMode
	t        target
	rejected []*patchHunk
	ignored  bool // the rest is skipped
	anyway   bool
	mismatch bool
}

func (p *patcher) file(f *filePatch) error {
	if p.back {
		f.from, f.to = f.to, f.from
		f.mode, f.oldMode = f.oldMode, f.mode
	}
	name, known := p.pick(f)
	if name == "" {
		p.lost(f)
		return nil
	}
	j := &job{patcher: p, f: f, name: name, out: name, known: known, reversed: p.back}
	if p.output != "" {
		j.out = p.output
	} else if f.to != "" && p.strip >= 0 {
		if j.out = p.stripped(strings.Repeat("x/", min(p.strip, 1)) + f.to); j.out == "" {
			p.lost(f)
			return nil
		}
	}
	data, mode, err := p.read(name)
	if err != nil {
		return j.refused(err)
	}
	j.mode, j.t = mode, target{in: diff.NewDoc(name, data).Lines, likeW: p.likeW, steps: p.Budget.Steps}
	j.announce()
	if j.reversed {
		j.swap()
	}
	j.hunks()
	return j.finish(data)
}

// refused tells of a file that cannot be patched; the next one may.
func (j *job) refused(err error) error {
	if t, ok := err.(diff.Trouble); ok {
		j.say("%s\n", string(t))
		n := len(j.f.hunks)
		j.say("%d out of %d %s ignored\n", n, n, plural("hunk", n))
		j.failed = true
		return nil
	}
	return diff.Trouble("Can't open file " + j.name + " : " + diff.Reason(err))
}

func (j *job) announce() {
	verb, note := "patching", ""
	if j.dry {
		verb = "checking"
	}
	if j.out != j.name {
		switch {
		case j.output != "":
			note = " (read from " + diff.Escape(j.name) + ")"
		case j.f.copied:
			note = " (copied from " + diff.Escape(j.name) + ")"
		default:
			note = " (renamed from " + diff.Escape(j.name) + ")"
		}
	}
	if j.f.crlf() {
		j.say("(Stripping trailing CRs from patch; use --binary to disable.)\n")
	}
	j.say("%s file %s%s\n", verb, diff.Escape(j.out), note)
}

// crlf reports whether the header came with CRs that were taken off.
func (p *filePatch) crlf() bool { return p.stripped }

func (j *job) swap() {
	for _, h := range j.f.hunks {
		h.reverse()
	}
	j.f.none[0], j.f.none[1] = j.f.none[1], j.f.none[0]
}

func (j *job) hunks() {
	if j.f.none[0] && len(j.t.in) > 0 && len(j.f.hunks) > 0 && j.f.hunks[0].oldLen == 0 {
		j.tell("The next patch would create the file %s,\nwhich already exists!", diff.Escape(j.name))
		j.doubt()
	}
	for i, h := range j.f.hunks {
		j.hunk(i, h)
	}
}

// doubt settles what to do with a patch that seems to have been applied.
func (j *job) doubt() {
	switch {
	case j.noReverse:
		j.tell("  Skipping patch.\n")
		j.ignored = true
	case j.force:
		j.say("  Applying it anyway.\n")
		j.anyway = true
	case j.batch:
		j.tell("  %s.\n", map[bool]string{false: "Assuming -R", true: "Ignoring -R"}[j.reversed])
		j.swap()
		j.reversed = !j.reversed
	default:
		j.tell("  %s -R? [n] \nApply anyway? [n] \n", map[bool]string{false: "Assume", true: "Ignore"}[j.reversed])
		j.say("Skipping patch.\n")
		j.ignored = true
	}
}

func (j *job) hunk(i int, h *patchHunk) {
	prefix, suffix := h.around()
	where, fuzz := 0, 0
	for ; !j.ignored && fuzz <= min(j.fuzz, max(prefix, suffix)); fuzz++ {
		if where = j.t.find(h, fuzz); where != 0 {
			break
		}
		j.mismatch = true
		if i == 0 && !j.force && !j.anyway && j.other(h, fuzz) {
			where = j.t.find(h, fuzz)
			break
		}
	}
	if where == 0 || j.ignored {
		j.mismatch = true
		if !j.ignored {
			j.say("Hunk #%d FAILED at %d.\n", i+1, max(h.first(), 1)+j.t.moved)
		}
		h.old, h.new = h.old+j.t.moved, h.new+j.t.moved
		j.rejected = append(j.rejected, h)
		return
	}
	at := where + j.t.moved
	j.t.apply(h, where)
	if fuzz > 0 || j.t.offset != 0 {
		j.mismatch = true
		j.say("Hunk #%d succeeded at %d", i+1, at)
		if fuzz > 0 {
			j.say(" with fuzz %d", fuzz)
		}
		if j.t.offset != 0 {
			j.say(" (offset %d %s)", j.t.offset, plural("line", j.t.offset))
		}
		j.say(".\n")
	}
}

// other looks whether the first hunk fits the other way round; true: the patch
// was turned.
func (j *job) other(h *patchHunk, fuzz int) bool {
	h.reverse()
	t := j.t
	fits := t.find(h, fuzz) != 0
	h.reverse()
	if !fits {
		return false
	}
	if j.reversed {
		j.tell("Unreversed patch detected!")
	} else {
		j.tell("Reversed (or previously applied) patch detected!")
	}
	was := j.reversed
	j.doubt()
	return j.reversed != was
}

// finish writes what came of it.
func (j *job) finish(was []byte) error {
	n, all := len(j.rejected), len(j.f.hunks)
	j.failed = j.failed || n > 0
	if !j.ignored {
		if err := j.write(was); err != nil {
			return diff.Trouble("Can't create file " + j.out + " : " + diff.Reason(err))
		}
	}
	if n == 0 {
		return nil
	}
	what := "FAILED"
	if j.ignored {
		what = "ignored"
	}
	j.tell("%d out of %d %s %s", n, all, plural("hunk", all), what)
	if j.dry {
		j.tell("\n")
		return nil
	}
	rej := j.rejects
	if rej == "" {
		rej = j.out + ".rej"
	}
	j.tell(" -- saving rejects to file %s\n", diff.Escape(rej))
	return j.reject(rej)
}

// write puts the result in place.
func (j *job) write(was []byte) error {
	data := j.t.finish()
	if j.dry {
		return nil
	}
	if j.known && (j.backup || j.mismatch && !j.noBackup) && !j.outputs[j.out] && j.output == "" {
		if err := j.put(j.out+j.suffix, was, j.mode); err != nil {
			return err
		}
	}
	j.outputs[j.out] = true
	gone := j.f.none[1] || j.removeEmpty
	if gone && len(data) == 0 && len(j.rejected) == 0 && (j.f.none[1] || j.removeEmpty) {
		return j.remove(j.out)
	}
	if j.f.none[1] && len(data) > 0 {
		j.say("Not deleting file %s as content differs from patch\n", diff.Escape(j.out))
		j.failed = true
	}
	mode := j.mode
	if j.f.mode != 0 && j.reversed == j.back {
		mode = fs.FileMode(j.f.mode & 0o777)
	}
	if err := j.put(j.out, data, mode); err != nil {
		return err
	}
	if j.out != j.name && !j.f.copied && j.output == "" {
		return j.remove(j.name)
	}
	return nil
}

// put writes a file, with the directories on the way.
func (j *job) put(name string, data []byte, mode fs.FileMode) error {
	for i, c := range name {
		if c == '/' && i > 0 {
			if err := j.FS.Mkdir(j.Path(name[:i]), 0o777&^j.Umask); err != nil && !errors.Is(err, syscall.EEXIST) {
				return err
			}
		}
	}
	full := j.Path(name)
	h, err := j.FS.OpenFile(full, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = h.Write(data)
	if i, serr := h.Stat(); serr == nil && err == nil && i.Mode().Perm() != mode {
		err = j.FS.Chmod(full, mode)
	}
	return diff.FirstOf(err, h.Close())
}

// remove takes a file away, and the directories that are empty then.
func (j *job) remove(name string) error {
	if err := j.FS.Remove(j.Path(name)); err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	for d := path.Dir(name); d != "." && d != "/"; d = path.Dir(d) {
		if j.FS.Remove(j.Path(d)) != nil {
			break
		}
	}
	return nil
}

// reject writes the hunks that did not fit.
func (j *job) reject(name string) error {
	var b strings.Builder
	names := [2]string{j.f.names[0], j.f.names[1]}
	found := 0
	for _, l := range j.f.header {
		if found < 2 && (strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "+++ ") || strings.HasPrefix(l, "*** ")) {
			names[found] = l[4:]
			found++
		}
	}
	if j.reversed {
		names[0], names[1] = names[1], names[0]
	}
	for i, head := range []string{"--- ", "+++ "} {
		if names[i] == "" {
			names[i] = "/dev/null"
		}
		b.WriteString(head + names[i] + "\n")
	}
	for _, h := range j.rejected {
		b.WriteString("@@ -" + hunkRange(h.old, h.oldLen) + " +" + hunkRange(h.new, h.newLen) + " @@" + h.tail + "\n")
		for _, l := range h.lines {
			b.WriteByte(l.op)
			b.Write(l.text)
		}
	}
	if err := j.put(name, []byte(b.String()), 0o666&^j.Umask); err != nil {
		return diff.Trouble("Can't create file " + name + " : " + diff.Reason(err))
	}
	return nil
}

func hunkRange(from, n int) string {
	if n == 0 {
		return diff.UnifiedRange(from, from)
	}
	return diff.UnifiedRange(from-1, from-1+n)
}
