package patch

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/diff"
	"egressd/hermetic/internal/gnu"
)

// patcher is one call of patch.
type patcher struct {
	*gnu.Work
	strip                       int // -1: only the last component counts
	back, dry, silent           bool
	noBackup, backup            bool
	noReverse, batch, force     bool
	removeEmpty, likeW          bool
	input, output, rejects, dir string
	suffix, original            string
	fuzz                        int
	failed                      bool
	outputs                     map[string]bool // files that were patched in this call
}

func patch(w *gnu.Work) {
	sets, operands, ok := diff.Options(w, "[OPTION]... [ORIGFILE [PATCHFILE]]", `p:,strip: F:,fuzz: l,ignore-whitespace c,context e,ed n,normal
		u,unified N,forward R,reverse i:,input: o:,output: r:,reject-file: D:,ifdef: ,merge:: E,remove-empty-files Z,set-utc T,set-time
		,quoting-style: b,backup ,backup-if-mismatch ,no-backup-if-mismatch V:,version-control: B:,prefix: Y:,basename-prefix:
		z:,suffix: g:,get: t,batch f,force s,quiet ,silent ,verbose ,dry-run ,posix d:,directory: ,reject-format: ,binary ,read-only:
		,follow-symlinks`)
	if !ok {
		return
	}
	p := &patcher{Work: w, strip: -1, fuzz: 2, suffix: ".orig", outputs: map[string]bool{}}
	for _, o := range sets {
		if !p.set(o) {
			return
		}
	}
	if len(operands) > 2 {
		diff.TryHelp(w, "%s: extra operand", operands[2])
		return
	}
	if len(operands) > 0 {
		p.original = operands[0]
	}
	if len(operands) > 1 && p.input == "" {
		p.input = operands[1]
	}
	if err := p.run(); err != nil {
		var t diff.Trouble
		if errors.As(err, &t) {
			_ = w.Out.Flush()
			w.Complain("**** %s", string(t))
		}
		w.Status = 2
	}
}

func (p *patcher) set(o command.Set) bool {
	flags := map[string]*bool{
		"reverse": &p.back, "dry-run": &p.dry, "quiet": &p.silent, "silent": &p.silent, "forward": &p.noReverse,
		"batch": &p.batch, "force": &p.force, "remove-empty-files": &p.removeEmpty, "ignore-whitespace": &p.likeW,
		"backup": &p.backup, "no-backup-if-mismatch": &p.noBackup,
	}
	texts := map[string]*string{"input": &p.input, "output": &p.output, "reject-file": &p.rejects, "directory": &p.dir, "suffix": &p.suffix}
	if at := flags[o.Name]; at != nil {
		*at = true
		return true
	}
	if at := texts[o.Name]; at != nil {
		*at = o.Value
		return true
	}
	switch o.Name {
	case "strip", "fuzz":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			p.Die(2, "**** %s %s is not a number", map[string]string{"strip": "strip count", "fuzz": "fuzz factor"}[o.Name], o.Value)
			return false
		}
		if o.Name == "strip" {
			p.strip = n
		} else {
			p.fuzz = n
		}
	case "context", "normal", "unified", "backup-if-mismatch", "verbose", "posix", "binary", "set-utc", "set-time", "read-only", "get":
	default:
		p.Refuse("--" + o.Name)
		return false
	}
	return true
}

func (p *patcher) run() error {
	in := p.input
	if in == "" {
		in = "-"
	}
	r, err := p.Open(in)
	if err != nil {
		return diff.Trouble("Can't open patch file " + in + " : " + diff.Reason(err))
	}
	b, err := p.All(r)
	_ = r.Close()
	if err != nil {
		return diff.Trouble("read error : " + diff.Reason(err))
	}
	if p.dir != "" {
		c := *p.Call
		c.Dir = strings.TrimSuffix(p.Path(p.dir), "/")
		if i, err := p.FS.Stat(c.Dir + "/"); err != nil || !i.IsDir() {
			return diff.Trouble("Can't change to directory " + p.dir + " : " + diff.Reason(diff.FirstOf(err, syscall.ENOTDIR)))
		}
		p.Call = &c
	}
	return p.files(&patchReader{lines: diff.NewDoc("", b).Lines})
}

func (p *patcher) files(r *patchReader) error {
	for n := 0; ; n++ {
		if err := p.Ctx.Err(); err != nil {
			return err
		}
		f, err := r.next()
		if f == nil && err == nil {
			if n == 0 && len(r.lines) > 0 {
				return diff.Trouble("Only garbage was found in the patch input.")
			}
			break
		}
		if err != nil {
			if name, _ := p.pick(f); name != "" {
				p.say("patching file %s\n", diff.Escape(name))
			}
			return err
		}
		if err := p.file(f); err != nil {
			return err
		}
	}
	if p.failed {
		p.Status = 1
	}
	return nil
}

func (p *patcher) say(format string, args ...any) {
	if !p.silent {
		diff.Writef(p.Out, format, args...)
	}
}

// tell writes what -s does not hide.
func (p *patcher) tell(format string, args ...any) { diff.Writef(p.Out, format, args...) }

// stripped is name without leading components; "" when it has too few, or when
// it must not be used.
//
// Threat: a patch that somebody else wrote names /etc/x or ../x -> such names do
// not count. Left over: a link of the workspace on the way, which leads to
// inside.
func (p *patcher) stripped(name string) string {
	if name == "" {
		return ""
	}
	if p.strip < 0 {
		name = path.Base(name)
	} else {
		for range p.strip {
			i := strings.IndexByte(name, '/')
			if i < 0 {
				return ""
			}
			name = strings.TrimLeft(name[i:], "/")
		}
	}
	if name == "" || name[0] == '/' || slices.Contains(strings.Split(name, "/"), "..") {
		return ""
	}
	return name
}

func (p *patcher) exists(name string) bool {
	_, err := p.FS.Lstat(p.Path(name))
	return err == nil
}

// pick chooses the file that a patch is for; known: it is there.
func (p *patcher) pick(f *filePatch) (name string, known bool) {
	if p.original != "" {
		return p.original, p.exists(p.original)
	}
	if f == nil {
		return "", false
	}
	if f.to != "" {
		name = p.stripped("x/" + f.from)
		if p.strip != 1 {
			name = p.stripped(f.names[p.oldSide()])
		}
		return name, name != "" && p.exists(name)
	}
	var here []string
	for _, n := range f.names {
		if n = p.stripped(n); n != "" && p.exists(n) {
			here = append(here, n)
		}
	}
	if len(here) > 0 {
		return best(here), true
	}
	if f.none[p.oldSide()] {
		for _, i := range []int{1 - p.oldSide(), p.oldSide(), 2} {
			if n := p.stripped(f.names[i]); n != "" {
				return n, false
			}
		}
	}
	return "", false
}

func (p *patcher) oldSide() int {
	if p.back {
		return 1
	}
	return 0
}

// best is the name with the fewest components, then with the shortest last one,
// then the shortest.
func best(names []string) string {
	return slices.MinFunc(names, func(a, b string) int {
		for _, f := range []func(string) int{
			func(s string) int { return strings.Count(s, "/") },
			func(s string) int { return len(path.Base(s)) },
			func(s string) int { return len(s) },
		} {
			if d := f(a) - f(b); d != 0 {
				return d
			}
		}
		return 0
	})
}

// lost tells that there is no file for a patch.
func (p *patcher) lost(f *filePatch) {
	hint := "Perhaps you used the wrong -p or --strip option?"
	if p.strip < 0 {
		hint = "Perhaps you should have used the -p or --strip option?"
	}
	diff.Writef(p.Out, "can't find file to patch at input line %d\n%s\n", f.line, hint)
	if len(f.header) > 0 {
		diff.Writef(p.Out, "The text leading up to this was:\n--------------------------\n")
		for _, l := range f.header {
			diff.Writef(p.Out, "|%s\n", l)
		}
		diff.Writef(p.Out, "--------------------------\n")
	}
	if p.batch || p.force {
		diff.Writef(p.Out, "No file to patch.  Skipping patch.\n")
	} else {
		diff.Writef(p.Out, "File to patch: \nSkip this patch? [y] \nSkipping patch.\n")
	}
	n := len(f.hunks)
	diff.Writef(p.Out, "%d out of %d %s ignored\n", n, n, plural("hunk", n))
	p.failed = true
}

func plural(s string, n int) string {
	if n == 1 {
		return s
	}
	return s + "s"
}

// read is the file to patch; nothing when it is not there.
func (p *patcher) read(name string) (data []byte, mode fs.FileMode, err error) {
	i, err := p.FS.Stat(p.Path(name))
	if errors.Is(err, syscall.ENOENT) {
		return nil, 0o666 &^ p.Umask, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if !i.Mode().IsRegular() {
		return nil, 0, diff.Trouble("File " + name + " is not a regular file -- refusing to patch")
	}
	r, err := p.OpenFile(name)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	data, err = p.All(r)
	return bytes.Clone(data), i.Mode().Perm(), err
}
