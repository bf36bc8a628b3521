package diff

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

func diff(w *gnu.Work) {
	sets, operands, ok := Options(w, "[OPTION]... FILES", diffSpec)
	if !ok {
		return
	}
	d := &differ{Work: w, width: 130, switches: switchesOf(w.Args)}
	for _, o := range sets {
		if !d.set(o) {
			return
		}
	}
	if !d.settle() {
		return
	}
	switch {
	case d.from != "" && d.to != "":
		w.Die(2, "--from-file and --to-file both specified")
		return
	case d.from != "":
		for _, o := range operands {
			d.note(d.pair(d.from, o))
		}
		return
	case d.to != "":
		for _, o := range operands {
			d.note(d.pair(o, d.to))
		}
		return
	case len(operands) < 2:
		TryHelp(w, "missing operand after '%s'", w.Args[len(w.Args)-1])
		return
	case len(operands) > 2:
		TryHelp(w, "extra operand '%s'", operands[2])
		return
	}
	d.note(d.pair(operands[0], operands[1]))
}

func (d *differ) note(status int) { d.Status = max(d.Status, status) }

// file is one side before it is read.
type file struct {
	name string
	info fs.FileInfo // nil: there is none
	err  error
}

func (d *differ) look(name string) file {
	f := file{name: name}
	switch {
	case name == "-":
		f.info = &stream{d.Now()}
	case d.noFollow:
		f.info, f.err = d.FS.Lstat(d.Path(name))
	case name == "":
		f.err = syscall.ENOENT
	default:
		f.info, f.err = d.FS.Stat(d.Path(name))
	}
	return f
}

// stream is what the standard input looks like.
type stream struct{ now time.Time }

func (s *stream) Name() string       { return "-" }
func (s *stream) Size() int64        { return -1 }
func (s *stream) Mode() fs.FileMode  { return 0 }
func (s *stream) ModTime() time.Time { return s.now }
func (s *stream) IsDir() bool        { return false }
func (s *stream) Sys() any           { return nil }

func (f file) isDir() bool { return f.info != nil && f.info.IsDir() }

// pair compares two operands.
func (d *differ) pair(a, b string) int {
	x, y := d.look(a), d.look(b)
	// A directory and a file: the file of that name in the directory.
	switch {
	case x.isDir() && y.info != nil && !y.isDir() && b != "-":
		x = d.look(under(a, path.Base(b)))
	case y.isDir() && x.info != nil && !x.isDir() && a != "-":
		y = d.look(under(b, path.Base(a)))
	default:
		return d.files(x, y, false)
	}
	for _, f := range []file{x, y} {
		if f.err != nil {
			d.Complain("%s: %s", f.name, Reason(f.err))
			return 2
		}
	}
	return d.files(x, y, false)
}

func under(dir, name string) string { return strings.TrimRight(dir, "/") + "/" + name }

// absent lets -N take what is not there for an empty file.
func (d *differ) absent(f *file, first bool) bool {
	return errors.Is(f.err, syscall.ENOENT) && (d.newFile || d.newFirst && first)
}

// files compares what is at both names; inside: within directories.
func (d *differ) files(x, y file, inside bool) int {
	missing := d.absent(&x, true) && y.err == nil || d.absent(&y, false) && x.err == nil
	status := 0
	for _, f := range []file{x, y} {
		if f.err != nil && !missing {
			d.Complain("%s: %s", f.name, Reason(f.err))
			status = 2
		}
	}
	switch {
	case status != 0:
		return status
	case (x.isDir() || x.info == nil) && (y.isDir() || y.info == nil):
		if inside && !d.recursive {
			d.say("Common subdirectories: %s and %s\n", x.name, y.name)
			return 0
		}
		return d.directories(x, y)
	case x.isDir() || y.isDir():
		d.say("File %s is a %s while file %s is a %s\n", x.name, kind(x), y.name, kind(y))
		return 1
	case d.noFollow && (isLink(x) || isLink(y)):
		return d.links(x, y)
	case x.name == y.name || x.info != nil && y.info != nil && x.name != "-" && y.name != "-" && inode.Same(x.info, y.info):
		return d.identical(x, y)
	}
	return d.contents(x, y, inside)
}

func isLink(f file) bool { return f.info != nil && f.info.Mode()&fs.ModeSymlink != 0 }

func (d *differ) links(x, y file) int {
	if !isLink(x) || !isLink(y) {
		d.say("File %s is a %s while file %s is a %s\n", x.name, kind(x), y.name, kind(y))
		return 1
	}
	a, err1 := d.FS.Readlink(d.Path(x.name))
	b, err2 := d.FS.Readlink(d.Path(y.name))
	switch {
	case err1 != nil || err2 != nil:
		return d.Die(2, "%s: %s", x.name, Reason(FirstOf(err1, err2)))
	case a != b:
		d.say("Symbolic links %s and %s differ\n", x.name, y.name)
		return 1
	case d.same:
		d.say("Files %s and %s are identical\n", x.name, y.name)
	}
	return 0
}

// FirstOf is a, or b if a is nil.
func FirstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func kind(f file) string {
	switch m := f.info; {
	case m == nil, m.Mode().IsRegular() && m.Size() == 0:
		return "regular empty file"
	case m.IsDir():
		return "directory"
	case m.Mode()&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.Mode()&fs.ModeCharDevice != 0:
		return "character special file"
	}
	return "regular file"
}

// contents compares two files.
func (d *differ) contents(x, y file, inside bool) int {
	var docs [2]*Doc
	for i, f := range []file{x, y} {
		b, err := d.read(f)
		if err != nil {
			d.Complain("%s: %s", f.name, Reason(err))
			return 2
		}
		docs[i] = &Doc{name: f.name, bytes: b}
	}
	a, b := docs[0], docs[1]
	if !d.text && (binary(a.bytes) || binary(b.bytes)) {
		if bytes.Equal(a.bytes, b.bytes) {
			return d.identical(x, y)
		}
		if d.brief {
			d.say("Files %s and %s differ\n", d.label(0, x.name), d.label(1, y.name))
		} else {
			d.say("Binary files %s and %s differ\n", d.label(0, x.name), d.label(1, y.name))
		}
		return 1
	}
	*a, *b = *NewDoc(a.name, a.bytes), *NewDoc(b.name, b.bytes)
	classify(a, b, d.like)
	all, err := script(d.Work, a, b, d.horizon, d.minimal)
	if err != nil {
		return 2
	}
	if d.ignored(a, b, all) {
		return d.identical(x, y)
	}
	if d.brief {
		d.say("Files %s and %s differ\n", d.label(0, x.name), d.label(1, y.name))
		return 1
	}
	p := &printer{differ: d, a: a, b: b, x: x, y: y}
	if inside {
		d.say("diff%s %s %s\n", d.switches, quoted(d.label(0, x.name)), quoted(d.label(1, y.name)))
	}
	return p.print(all)
}

func (d *differ) identical(x, y file) int {
	if d.style == sideBySide && !d.brief {
		return d.alike(x, y)
	}
	if d.same {
		d.say("Files %s and %s are identical\n", d.label(0, x.name), d.label(1, y.name))
	}
	return 0
}

// label is what a file is called: by --label, or its name.
func (d *differ) label(side int, name string) string {
	if side < len(d.labels) {
		return d.labels[side]
	}
	return name
}

// binary is GNU's guess: a NUL byte in the first block.
func binary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 4096)], 0) >= 0 }

func (d *differ) read(f file) ([]byte, error) {
	if f.info == nil {
		return nil, nil
	}
	r, err := d.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := d.All(r)
	if d.stripCR {
		b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	return b, err
}

func (d *differ) say(format string, args ...any) { Writef(d.Out, format, args...) }

// quoted is a name as a shell would need it.
func quoted(name string) string {
	if strings.ContainsAny(name, "=^") {
		return gnu.QuoteShell(name)
	}
	return gnu.QuoteName(name)
}

// stamp is a file's time in a header.
func (d *differ) stamp(f file) string {
	t := time.Unix(0, 0)
	if f.info != nil {
		t = f.info.ModTime()
	}
	return date.Format("%Y-%m-%d %H:%M:%S.%N %z", t.In(date.Zone(d.Getenv("TZ"))))
}
