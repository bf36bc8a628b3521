package gzip

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/vfs"
)

// packer is one call of gzip.
type packer struct {
	*gnu.Work
	program                                 string
	unpack, stdout, keep, force, list       bool
	noName, quiet, recursive, test, verbose bool
	level                                   int
	suffix                                  string
	listed                                  int
	sumIn, sumOut                           int64
}

func gzipCommand(w *gnu.Work) {
	p := &packer{Work: w, program: "gzip", level: 6, suffix: ".gz"}
	p.unpack = w.Args[0] != "gzip"
	p.stdout = w.Args[0] == "zcat"
	p.run(`a,ascii c,stdout ,to-stdout d,decompress ,uncompress f,force k,keep l,list n,no-name N,name q,quiet ,silent r,recursive
		,rsyncable ,synchronous S:,suffix: t,test v,verbose 1,fast 2 3 4 5 6 7 8 9,best L,license h`)
}

func (p *packer) run(spec string) {
	sets, operands, ok := p.Options("[OPTION]... [FILE]...", spec)
	if !ok {
		return
	}
	for _, o := range sets {
		p.set(o)
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		if p.Ctx.Err() != nil {
			return
		}
		p.operand(name)
	}
	if p.list && p.listed > 1 {
		p.row(p.sumIn, p.sumOut, p.sumOut-(p.sumIn-18), "(totals)", 0, time.Time{})
	}
}

func (p *packer) set(o command.Set) {
	flags := map[string]*bool{
		"stdout": &p.stdout, "to-stdout": &p.stdout, "decompress": &p.unpack, "uncompress": &p.unpack, "force": &p.force,
		"keep": &p.keep, "list": &p.list, "no-name": &p.noName, "quiet": &p.quiet, "silent": &p.quiet,
		"recursive": &p.recursive, "test": &p.test, "verbose": &p.verbose,
	}
	levels := map[string]int{"fast": 1, "best": 9}
	switch at := flags[o.Name]; {
	case at != nil:
		*at = true
	case o.Name == "compress":
		p.unpack = false
	case o.Name == "name":
		p.noName = false
	case o.Name == "suffix":
		p.suffix = "." + strings.TrimPrefix(o.Value, ".")
	case levels[o.Name] != 0:
		p.level = levels[o.Name]
	case len(o.Name) == 1 && o.Name[0] >= '1' && o.Name[0] <= '9':
		p.level = int(o.Name[0] - '0')
	}
}

// fault is a message with the program's own name, whichever it was called by,
// as gzip's are.
func (p *packer) fault(status int, format string, args ...any) {
	_ = p.Out.Flush()
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.program, fmt.Sprintf(format, args...))
	if p.Status != 1 {
		p.Status = status
	}
}

func (p *packer) operand(name string) {
	if name == "-" {
		p.stream()
		return
	}
	i, err := p.FS.Lstat(p.Path(name))
	if err != nil && p.unpack && !strings.HasSuffix(name, p.suffix) {
		if j, jerr := p.FS.Lstat(p.Path(name + p.suffix)); jerr == nil {
			name, i, err = name+p.suffix, j, nil
		}
	}
	if err == nil && i.Mode().Type() != 0 && !i.IsDir() && (p.stdout || p.force || p.test || p.list) {
		i, err = p.FS.Stat(p.Path(name))
	}
	switch {
	case err != nil:
		p.fault(1, "%s: %s", name, command.Reason(err))
	case i.IsDir() && p.recursive:
		p.directory(name)
	case i.IsDir():
		p.fault(2, "%s is a directory -- ignored", name)
	case !i.Mode().IsRegular():
		p.fault(2, "%s is not a directory or a regular file - ignored", name)
	case p.list:
		p.tell(name)
	case p.stdout || p.test:
		p.through(name)
	default:
		p.replace(name)
	}
}

func (p *packer) directory(name string) {
	all, err := p.FS.ReadDir(p.Path(name))
	if err != nil {
		p.fault(1, "%s: %s", name, command.Reason(err))
		return
	}
	for _, e := range all {
		p.operand(strings.TrimRight(name, "/") + "/" + e.Name())
	}
}

// stream goes from the standard input to the standard output.
func (p *packer) stream() {
	r, err := p.Open("-")
	if err == nil {
		if p.list {
			p.listing("stdin", p.Steady(r), -1, time.Time{})
			return
		}
		err = p.convert("stdin", p.sink(), r)
	}
	if err != nil {
		p.bad("stdin", err)
	}
}

func (p *packer) sink() io.Writer {
	if p.test {
		return io.Discard
	}
	return p.Out
}

// through goes from a file to the standard output.
func (p *packer) through(name string) {
	r, err := p.OpenFile(name)
	if err == nil {
		err = p.convert(name, p.sink(), r)
		_ = r.Close()
	}
	switch {
	case err != nil:
		p.bad(name, err)
	case p.test && p.verbose:
		fmt.Fprintf(p.Stderr, "%s:\t OK\n", name)
	}
}

var errFormat = errors.New("not in gzip format")

func (p *packer) bad(name string, err error) {
	switch {
	case p.Ctx.Err() != nil:
		p.Status = 1
	case errors.Is(err, errFormat), errors.Is(err, gzip.ErrHeader):
		p.broken("%s: not in %s format", name, p.program)
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.broken("%s: unexpected end of file", name)
	case errors.Is(err, gzip.ErrChecksum):
		p.broken("%s: invalid compressed data--crc error", name)
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
		p.Status = 141
	default:
		p.fault(1, "%s: %s", name, command.Reason(err))
	}
}

// broken is fault after an empty line, as gzip tells of what is in the file.
func (p *packer) broken(format string, args ...any) {
	_ = p.Out.Flush()
	fmt.Fprintln(p.Stderr)
	p.fault(1, format, args...)
}

// convert packs or unpacks r.
func (p *packer) convert(name string, w io.Writer, r io.Reader) error {
	if p.unpack || p.test {
		in, err := p.opened(r)
		if err != nil {
			return err
		}
		return gnu.Pour(w, p.Steady(in))
	}
	z, err := gzip.NewWriterLevel(w, p.level)
	if err != nil {
		return err
	}
	if !p.noName && name != "stdin" {
		if i, err := p.FS.Stat(p.Path(name)); err == nil {
			z.Name, z.ModTime = path.Base(name), i.ModTime()
		}
	}
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	return z.Close()
}

// opened reads what is packed; zcat -f and gzip -cdf pass on what is not.
func (p *packer) opened(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 32<<10)
	head, err := b.Peek(3)
	if len(head) == 0 && err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	const magic = "\x1f\x8b"
	switch {
	case !strings.HasPrefix(string(head), magic) && p.force && p.stdout:
		return b, nil
	case !strings.HasPrefix(string(head), magic):
		return nil, errFormat
	}
	return gzip.NewReader(b)
}

// target is what the result of name is called; "" when it cannot be.
func (p *packer) target(name string) string {
	if !p.unpack {
		if strings.HasSuffix(name, p.suffix) {
			p.fault(2, "%s already has %s suffix -- unchanged", name, p.suffix)
			return ""
		}
		return name + p.suffix
	}
	for _, s := range [][2]string{{p.suffix, ""}, {".tgz", ".tar"}, {".taz", ".tar"}, {"-gz", ""}, {".z", ""}, {"-z", ""}, {"_z", ""}, {".Z", ""}} {
		if base, ok := strings.CutSuffix(name, s[0]); ok && path.Base(base) != "." && base != "" && !strings.HasSuffix(base, "/") {
			return base + s[1]
		}
	}
	p.fault(2, "%s: unknown suffix -- ignored", name)
	return ""
}

// replace makes the result beside the file and removes the file.
func (p *packer) replace(name string) {
	out := p.target(name)
	if out == "" {
		return
	}
	i, err := p.FS.Stat(p.Path(name))
	if err != nil {
		p.fault(1, "%s: %s", name, command.Reason(err))
		return
	}
	if _, err := p.FS.Lstat(p.Path(out)); err == nil {
		if !p.force {
			p.fault(2, "%s already exists;\tnot overwritten", out)
			return
		}
		_ = p.FS.Remove(p.Path(out))
	}
	r, err := p.OpenFile(name)
	if err != nil {
		p.fault(1, "%s: %s", name, command.Reason(err))
		return
	}
	defer r.Close()
	f, err := p.FS.OpenFile(p.Path(out), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, i.Mode().Perm())
	if err != nil {
		p.fault(1, "%s: %s", out, command.Reason(err))
		return
	}
	if err := p.fill(name, f, r); err != nil {
		_ = p.FS.Remove(p.Path(out))
		p.bad(name, err)
		return
	}
	_ = p.FS.Chtimes(p.Path(out), time.Time{}, i.ModTime(), true)
	p.done(name, out, i.Size())
}

func (p *packer) fill(name string, f vfs.File, r io.Reader) error {
	b := bufio.NewWriterSize(f, 64<<10)
	err := p.convert(name, b, r)
	if err == nil {
		err = b.Flush()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (p *packer) done(name, out string, size int64) {
	what := "replaced with"
	if p.keep {
		what = "created"
	} else if err := p.FS.Remove(p.Path(name)); err != nil {
		p.fault(1, "%s: %s", name, command.Reason(err))
	}
	if !p.verbose {
		return
	}
	plain, packed := size, int64(0)
	if i, err := p.FS.Stat(p.Path(out)); err == nil {
		packed = i.Size()
	}
	if p.unpack {
		plain, packed = packed, plain
	}
	fmt.Fprintf(p.Stderr, "%s:\t%s -- %s %s\n", name, ratio(plain-packed+18+int64(len(path.Base(name)))+1, plain), what, out)
}
