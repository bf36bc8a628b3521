package tar

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/inode"
)

// record is what the length of an archive is a multiple of.
const record = 20 * 512

// writer is an archive being written.
type writer struct {
	*archiver
	out   *counted
	tar   *tar.Writer
	links map[[2]uint64]string // files with several names, and the first of them
	self  fs.FileInfo          // the archive
	newer map[string]time.Time // -u: what is in the archive already
	log   io.Writer
	start int64 // what the archive has already
}

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (t *archiver) create() error {
	if len(t.operands) == 0 {
		t.usage("Cowardly refusing to create an empty archive")
		return nil
	}
	if t.auto && t.pack == 0 {
		t.pack = packOf(t.file)
	}
	if t.pack == 'j' || t.pack == 'J' {
		return fatal("compression with " + map[byte]string{'j': "bzip2", 'J': "xz"}[t.pack] + " is not supported here; use gzip (-z)")
	}
	w := &writer{archiver: t, links: map[[2]uint64]string{}, log: t.Out}
	var out io.Writer = t.Out
	if t.file == "-" {
		w.log = t.Stderr
	} else {
		f, err := t.FS.OpenFile(t.Path(t.file), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666&^t.Umask)
		if err != nil {
			return fatal(t.file + ": Cannot open: " + command.Reason(err))
		}
		defer f.Close()
		w.self, _ = f.Stat()
		out = f
	}
	return w.all(out)
}

func packOf(name string) byte {
	for ext, p := range map[string]byte{".gz": 'z', ".tgz": 'z', ".taz": 'z', ".bz2": 'j', ".tbz": 'j', ".tbz2": 'j', ".xz": 'J', ".txz": 'J'} {
		if strings.HasSuffix(name, ext) {
			return p
		}
	}
	return 0
}

// all writes every operand and what ends an archive.
func (w *writer) all(out io.Writer) error {
	b := bufio.NewWriterSize(out, 64<<10)
	w.out = &counted{w: b, n: w.start}
	var z *gzip.Writer
	if w.pack == 'z' {
		z = gzip.NewWriter(b)
		w.out.w = z
	}
	w.tar = tar.NewWriter(w.out)
	for _, o := range w.operands {
		if err := w.Ctx.Err(); err != nil {
			return err
		}
		if err := w.tree(o.dir, o.name); err != nil {
			return w.bad(err)
		}
	}
	if err := w.tar.Close(); err != nil {
		return w.bad(err)
	}
	if n := w.out.n % record; n > 0 {
		if _, err := w.out.Write(make([]byte, record-n)); err != nil {
			return w.bad(err)
		}
	}
	if z != nil {
		if err := z.Close(); err != nil {
			return w.bad(err)
		}
	}
	if err := b.Flush(); err != nil {
		return w.bad(err)
	}
	return nil
}

func (w *writer) bad(err error) error {
	return fatal(fmt.Sprintf("%s: Cannot write: %s", w.file, command.Reason(err)))
}

// tree adds a file, or a directory with what is in it. Its errors are of the
// archive; what cannot be read is only told.
func (w *writer) tree(dir, name string) error {
	if err := w.Ctx.Err(); err != nil {
		return err
	}
	full := w.Path(w.under(dir, name))
	stat := w.FS.Lstat
	if w.follow {
		stat = w.FS.Stat
	}
	i, err := stat(full)
	switch {
	case err != nil:
		w.fault("%s: Cannot stat: %s", name, command.Reason(err))
		return nil
	case w.excluded(name):
		return nil
	case w.self != nil && inode.Same(i, w.self):
		w.Complain("%s: file is the archive; not dumped", name)
		return nil
	}
	if err := w.entry(full, name, i); err != nil {
		return err
	}
	if !i.IsDir() || w.noRecursion {
		return nil
	}
	list, err := w.FS.ReadDir(full)
	if err != nil {
		w.fault("%s: Cannot open: %s", name, command.Reason(err))
		return nil
	}
	for _, e := range list {
		if err := w.tree(dir, strings.TrimSuffix(name, "/")+"/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// safe takes off what must not begin a member's name.
func (t *archiver) safe(name, what string) string {
	if t.absolute {
		return name
	}
	cut := 0
	for at := 0; at < len(name); {
		end := strings.IndexByte(name[at:], '/')
		part := name[at:]
		if end >= 0 {
			part = name[at : at+end]
		}
		at += len(part)
		for at < len(name) && name[at] == '/' {
			at++
		}
		if part == ".." || cut == 0 && part == "" {
			cut = at
		}
	}
	if cut > 0 {
		t.once("Removing leading `" + name[:cut] + "' from " + what)
		name = name[cut:]
	}
	if name == "" {
		return "."
	}
	return name
}

func (w *writer) entry(full, name string, i fs.FileInfo) error {
	h, err := w.header(full, name, i)
	if h == nil || err != nil {
		return err
	}
	if at, ok := w.newer[h.Name]; ok && !i.ModTime().Truncate(time.Second).After(at) {
		return nil
	}
	var body io.ReadCloser
	if h.Typeflag == tar.TypeReg && h.Size > 0 {
		if body, err = w.OpenFile(full); err != nil {
			w.fault("%s: Cannot open: %s", name, command.Reason(err))
			return nil
		}
		defer body.Close()
	}
	if w.verbose > 0 {
		w.tell(w.log, h, name)
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if body == nil {
		return nil
	}
	n, err := io.Copy(w.tar, io.LimitReader(body, h.Size))
	if err == nil && n < h.Size {
		w.fault("%s: File shrank by %d bytes; padding with zeros", name, h.Size-n)
		_, err = io.CopyN(w.tar, zeros{}, h.Size-n)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (w *writer) header(full, name string, i fs.FileInfo) (*tar.Header, error) {
	n := inode.Of(i)
	h := &tar.Header{
		Name: w.transformed(w.safe(name, "member names")), Mode: int64(i.Mode().Perm()), ModTime: i.ModTime().Truncate(time.Second),
		Uid: int(n.UID), Gid: int(n.GID), Uname: inode.Name(n.UID), Gname: inode.Name(n.GID), Format: tar.FormatGNU,
	}
	if w.format == "posix" || w.format == "pax" {
		h.Format, h.ModTime = tar.FormatPAX, i.ModTime()
	}
	if !w.mtime.IsZero() {
		h.ModTime = w.mtime
	}
	if w.numeric {
		h.Uname, h.Gname = "", ""
	}
	setOwner(w.owner, &h.Uname, &h.Uid)
	setOwner(w.group, &h.Gname, &h.Gid)
	key := [2]uint64{n.Dev, n.Ino}
	switch m := i.Mode(); {
	case m.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix(h.Name, "/")+"/"
	case m&fs.ModeSymlink != 0:
		target, err := w.FS.Readlink(full)
		if err != nil {
			w.fault("%s: Cannot readlink: %s", name, command.Reason(err))
			return nil, nil
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
	case !m.IsRegular():
		w.Complain("%s: socket or device ignored", name)
		return nil, nil
	case n.Links > 1 && w.links[key] != "":
		h.Typeflag, h.Linkname = tar.TypeLink, w.links[key]
	default:
		h.Typeflag, h.Size = tar.TypeReg, i.Size()
		if n.Links > 1 {
			w.links[key] = h.Name
		}
	}
	return h, nil
}

// setOwner reads NAME, NAME:ID or ID.
func setOwner(s string, name *string, id *int) {
	if s == "" {
		return
	}
	n, num, two := strings.Cut(s, ":")
	if v, err := strconv.Atoi(n); err == nil && !two {
		*name, *id = "", v
		return
	}
	*name = n
	if v, err := strconv.Atoi(num); err == nil {
		*id = v
	} else if n == "root" {
		*id = 0
	}
}

// append adds to an archive that is there.
func (t *archiver) append() error {
	if t.pack != 0 {
		return fatal("Cannot update compressed archives")
	}
	if t.file == "-" {
		return fatal("Options '-Aru' are incompatible with '-f -'")
	}
	f, err := t.FS.OpenFile(t.Path(t.file), syscall.O_RDWR|syscall.O_CREAT, 0o666&^t.Umask)
	if err != nil {
		return fatal(t.file + ": Cannot open: " + command.Reason(err))
	}
	defer f.Close()
	w := &writer{archiver: t, links: map[[2]uint64]string{}, log: t.Out}
	w.self, _ = f.Stat()
	end, seen, err := members(t.Steady(f))
	if err != nil {
		return fatal("This does not look like a tar archive")
	}
	w.start = end
	if t.mode == 'u' {
		w.newer = seen
	}
	if _, err := f.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	return w.all(f)
}

// members finds where the members end, and when each was changed.
func members(r io.Reader) (end int64, seen map[string]time.Time, err error) {
	c := &counter{r: r}
	seen = map[string]time.Time{}
	in := tar.NewReader(c)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return end, seen, nil
		}
		if err != nil {
			return 0, nil, err
		}
		seen[h.Name] = h.ModTime
		if _, err := io.Copy(io.Discard, in); err != nil {
			return 0, nil, err
		}
		end = (c.n + 511) / 512 * 512
	}
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
