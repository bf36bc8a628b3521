package tar

import (
	"archive/tar"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/shell/pattern"
)

// read lists or extracts.
func (t *archiver) read() error {
	if t.dir != "" && t.mode == 'x' {
		if _, err := t.FS.Stat(t.Path(t.dir) + "/"); err != nil {
			return fatal(t.dir + ": Cannot open: " + command.Reason(err))
		}
	}
	r, err := t.Open(t.file)
	if err != nil {
		return fatal(t.file + ": Cannot open: " + command.Reason(err))
	}
	defer r.Close()
	in, err := t.unpacked(r)
	if err != nil {
		return err
	}
	if t.wildcards {
		for _, o := range t.operands {
			t.matches = append(t.matches, pattern.Compile(o.name, pattern.Options{}))
		}
	}
	x := &extractor{archiver: t}
	if t.top == "\x00" {
		t.top = strings.TrimSuffix(path.Base(t.file), path.Ext(t.file))
		t.top = strings.TrimSuffix(t.top, ".tar")
	}
	err = x.members(tar.NewReader(in))
	x.settle()
	for i, o := range t.operands {
		if err == nil && !t.used[i] {
			t.fault("%s: Not found in archive", o.name)
		}
	}
	return err
}

// unpacked finds out how the archive is packed.
func (t *archiver) unpacked(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, _ := b.Peek(6)
	var in io.Reader = b
	switch {
	case strings.HasPrefix(string(head), "\x1f\x8b"):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, t.garbage()
		}
		in, t.packed = z, true
	case strings.HasPrefix(string(head), "BZh"):
		in = bzip2.NewReader(b)
	case strings.HasPrefix(string(head), "\xfd7zXZ"), strings.HasPrefix(string(head), "\x28\xb5\x2f\xfd"):
		return nil, fatal(t.file + ": this compression is not supported here")
	case t.pack == 'z' && len(head) > 0:
		_, _ = io.WriteString(t.Stderr, "\ngzip: stdin: not in gzip format\n")
		t.Complain("Child returned status 1")
		return nil, fatal("")
	}
	return t.Steady(in), nil
}

func (t *archiver) garbage() error {
	t.fault("This does not look like a tar archive")
	return nil
}

// extractor goes through an archive.
type extractor struct {
	*archiver
	dirs  []later // whose times and modes are set in the end
	links []later // made in the end
	any   bool
}

// later is what waits until all files are there.
type later struct {
	h    *tar.Header
	full string
	name string
}

func (x *extractor) members(in *tar.Reader) error {
	for {
		if err := x.Ctx.Err(); err != nil {
			return err
		}
		h, err := in.Next()
		switch {
		case err == io.EOF:
			return nil
		case !x.any && (errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) && !x.packed):
			x.fault("This does not look like a tar archive")
			if errors.Is(err, tar.ErrHeader) {
				x.Complain("Skipping to next header")
			}
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return x.cutOff()
		case err != nil:
			return x.corrupt(err)
		}
		x.any = true
		if !x.wanted(h.Name) || x.excluded(h.Name) {
			continue
		}
		if err := x.member(in, h); err != nil {
			return err
		}
	}
}

// cutOff is an archive that ends too early.
func (x *extractor) cutOff() error {
	if !x.packed {
		return fatal("Unexpected EOF in archive")
	}
	_ = x.Out.Flush()
	_, _ = io.WriteString(x.Stderr, "\ngzip: stdin: unexpected end of file\n")
	return fatal("Child returned status 1")
}

func (x *extractor) corrupt(err error) error {
	switch {
	case x.Ctx.Err() != nil:
		return err
	case errors.Is(err, tar.ErrHeader):
		x.fault("Skipping to next header")
		return nil
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return fatal("Child returned status 1")
	}
	return err
}

// wanted reports whether the member was asked for.
func (x *extractor) wanted(name string) bool {
	if len(x.operands) == 0 {
		return true
	}
	found := false
	plain := strings.TrimSuffix(name, "/")
	for i, o := range x.operands {
		want := strings.TrimSuffix(o.name, "/")
		hit := plain == want || strings.HasPrefix(plain, want+"/")
		if x.wildcards && !hit {
			for at := len(plain); at > 0 && !hit; at = strings.LastIndexByte(plain[:at], '/') {
				hit = x.matches[i].Match(plain[:at])
			}
		}
		if hit {
			x.used[i], found = true, true
		}
	}
	return found
}

func (x *extractor) member(in *tar.Reader, h *tar.Header) error {
	if x.mode == 't' {
		x.safe(h.Name, "member names") // it tells what extracting would do
		if x.verbose > 0 {
			x.long(x.Out, h, x.transformed(h.Name))
		} else {
			x.Out.WriteString(printable(x.transformed(h.Name)) + "\n")
		}
		return nil
	}
	name := h.Name
	name = x.safe(name, "member names")
	if !x.absolute && slices.Contains(strings.Split(h.Name, "/"), "..") {
		x.fault("%s: Member name contains '..'", printable(h.Name))
		return nil
	}
	if name = x.stripped(x.transformed(name)); name == "" {
		return nil
	}
	if x.top != "" && !strings.HasPrefix(name, x.top+"/") && strings.TrimSuffix(name, "/") != x.top {
		name = x.top + "/" + name
	}
	if x.verbose > 0 {
		out := io.Writer(x.Out)
		if x.toStdout {
			out = x.Stderr
		}
		x.tell(out, h, name)
	}
	if x.toStdout {
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse {
			return nil
		}
		return gnu.Pour(x.Out, in)
	}
	return x.extract(in, h, name)
}

// stripped takes --strip-components off; "" when nothing is left.
func (x *extractor) stripped(name string) string {
	for range x.strip {
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return ""
		}
		name = strings.TrimLeft(name[i:], "/")
	}
	return name
}

// extract makes one member. Errors about it are told; only those of the archive
// are reported.
//
// Threat: an archive has a link to elsewhere and then a file below that link ->
// symbolic links are made when all else is there, and a link that is in the way
// of a file is taken away first; the file system itself lets nothing out of the
// workspace. Left over: directories of the workspace that are links already are
// followed, as tar does.
func (x *extractor) extract(in *tar.Reader, h *tar.Header, name string) error {
	dir := x.dir
	for i, o := range x.operands {
		if x.used[i] && o.dir != "" && len(x.operands) == 1 {
			dir = o.dir
		}
	}
	m := later{h: h, full: x.Path(x.under(dir, name)), name: name}
	if h.Typeflag == tar.TypeDir {
		x.directory(m)
		return nil
	}
	m.full = strings.TrimRight(m.full, "/")
	if i, err := x.FS.Lstat(m.full); err == nil {
		if !x.clear(m, i) {
			return nil
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return x.regular(in, m)
	case tar.TypeSymlink:
		x.links = append(x.links, m)
	case tar.TypeLink:
		x.hardLink(m, dir)
	default:
		x.fault("%s: Cannot mknod: Operation not permitted", printable(name))
	}
	return nil
}
