package stage

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Report says what came back. Paths are below the workspace.
type Report struct {
	Added, Changed, Deleted []string

	// Conflicts are changes that were not made, because the workspace has changed
	// there since it was sent, or holds a file that was not sent.
	Conflicts []Problem
	// Sums are those of the regular files that were written.
	Sums map[string][sha256.Size]byte

	// There is what the other side has, in the form of Marks.
	There map[string]string

	// Refused are entries that do not belong into a workspace.
	Refused []Problem
}

// Problem is one path and why it was left alone.
type Problem struct{ Path, Why string }

// Mirror brings what changed elsewhere into the workspace. archive is a
// gzip-compressed tar of the whole directory there; it is read twice, and nothing
// is touched before it has been read to its end once. aside is a directory that
// receives what came back for the paths of Conflicts; it is made when it is
// needed, "" drops them. After an error the report lists what was done so far.
//
// Threat: what comes back was made by an agent on another party's machine: names
// that lead out, files behind links, hooks in .git, devices, an archive that is
// cut short or never ends -> names are judged first, every write goes through one
// os.Root and into a real directory, what may not travel is not written, files
// come into being beside the old one and replace it whole, and deletions happen
// only for files that were sent and are still as they were.
func (t *Tree) Mirror(ctx context.Context, archive io.ReadSeeker, aside string) (Report, error) {
	return newMirror(ctx, t, aside).run(archive)
}

func newMirror(ctx context.Context, t *Tree, aside string) *mirror {
	return &mirror{tree: t, ctx: ctx, remote: map[string]*remote{}, within: map[string]bool{}, aside: aside, buffer: make([]byte, 32<<10)}
}

// run reads the archive, and makes the changes.
func (m *mirror) run(archive io.ReadSeeker) (Report, error) {
	err := m.skim(archive)
	if err == nil {
		err = m.read(archive, m.list)
	}
	if errors.Is(err, errTooLarge) {
		return m.report, err // also when it is fetched again
	} else if err != nil {
		return m.report, &UnreadableError{err}
	}
	if !m.whole {
		return m.report, &UnreadableError{errors.New("the archive has no top directory")}
	}
	m.report.There = m.marks()
	m.plan()
	if m.lacks() {
		return m.report, ErrMoved
	}
	err = m.apply(archive)
	for _, list := range []*[]string{&m.report.Added, &m.report.Changed, &m.report.Deleted} {
		slices.Sort(*list)
	}
	return m.report, err
}

// UnreadableError is an archive that is not whole, or not one that a workspace
// may become. Nothing was changed then.
type UnreadableError struct{ Err error }

// Error implements error.
func (e *UnreadableError) Error() string {
	return "what came back cannot be read, nothing was changed: " + e.Err.Error()
}

// Unwrap is what is wrong with it.
func (e *UnreadableError) Unwrap() error { return e.Err }

// marks is what the archive holds.
func (m *mirror) marks() map[string]string {
	marks := make(map[string]string, len(m.remote))
	for name, r := range m.remote {
		if !r.Mode.IsDir() || !m.within[name] {
			marks[name] = r.mark()
		}
	}
	return marks
}

// remote is one path of the archive.
type remote struct {
	Entry
	at int // which entry of the archive, or notFetched: the last one of a name counts
}

type mirror struct {
	tree   *Tree
	ctx    context.Context
	remote map[string]*remote
	report Report
	aside  string
	bytes  int64

	above   map[string]string      // what is in the way of a directory, see obstacle
	within  map[string]bool        // directories that hold something there
	write   map[string]action      // paths to make or to replace
	remove  []string               // files and links to delete
	seen    map[string]fs.FileInfo // what is to be replaced or deleted, before it was compared
	whole   bool                   // the top directory is in the archive, which a tar of nothing has not
	handled int

	buffer []byte // for the contents of one entry after the other
}

// read reads the archive and calls visit for each entry.
func (m *mirror) read(archive io.ReadSeeker, visit func(at int, h *tar.Header, r io.Reader) error) error {
	size, err := sizeOf(archive)
	if err != nil {
		return err
	}
	stream, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	unzipped := &bounded{stream, m.most(size)}
	entries := tar.NewReader(unzipped)
	for at := 0; ; at++ {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if at > m.tree.config.MaxFiles+1 {
			return tooLarge("files", m.tree.config.MaxFiles)
		}
		if err := visit(at, h, entries); err != nil {
			return err
		}
	}
	// Behind the end of the tar is padding, and gzip's checksum.
	_, err = io.Copy(io.Discard, io.LimitReader(unzipped, 1<<20))
	return err
}

// bounded is a stream that must end before left bytes.
type bounded struct {
	r    io.Reader
	left int64
}

// errTooLarge is an archive that is more than a workspace may have. Nothing was
// changed then, and another fetch gets no less.
var errTooLarge = errors.New("what came back is too large, nothing was changed")

func tooLarge[T int | int64](what string, most T) error {
	return fmt.Errorf("%w: more than %d %s", errTooLarge, most, what)
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: it does not end", errTooLarge)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// list notes one entry.
func (m *mirror) list(at int, h *tar.Header, r io.Reader) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	if name == "" || name == "." {
		m.whole = m.whole || h.Typeflag == tar.TypeDir
		return nil
	}
	if m.travelsNot(name) {
		return nil
	}
	if why := badName(name); why != "" {
		m.refuse(h.Name, why)
		return nil
	}
	if len(m.remote) >= m.tree.config.MaxFiles {
		return tooLarge("files", m.tree.config.MaxFiles)
	}
	if h.Size > m.tree.config.MaxBytes-m.bytes { // said before it is read
		return tooLarge("bytes", m.tree.config.MaxBytes)
	}
	e := &remote{at: at, Entry: Entry{Path: name, Mode: fs.FileMode(h.Mode) & fs.ModePerm, Size: h.Size}}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		sum := sha256.New()
		n, err := io.CopyBuffer(sum, r, m.buffer) // at most h.Size
		if err != nil {
			return err
		}
		m.bytes += n
		sum.Sum(e.sum[:0])
		m.count(n)
	case tar.TypeDir:
		e.Mode |= fs.ModeDir
	case tar.TypeSymlink:
		e.Mode, e.Link = fs.ModeSymlink|fs.ModePerm, h.Linkname
	case tar.TypeLink:
		return m.hardLink(e, h.Linkname)
	default:
		m.refuse(h.Name, "a device, FIFO or socket")
		return nil
	}
	m.note(e)
	return nil
}

func (m *mirror) note(e *remote) {
	m.remote[e.Path] = e
	for dir := path.Dir(e.Path); dir != "." && !m.within[dir]; dir = path.Dir(dir) {
		m.within[dir] = true
	}
}

// hardLink notes a second name of a file that came before: here it becomes a
// file of its own.
func (m *mirror) hardLink(e *remote, target string) error {
	of := m.remote[strings.TrimPrefix(target, "./")]
	if of == nil || !of.Mode.IsRegular() {
		m.refuse(e.Path, "a hard link to something that did not come back")
		return nil
	}
	name := e.Path
	*e = *of
	e.Path = name
	m.note(e)
	return nil
}

func (m *mirror) count(n int64) {
	m.handled++
	if p := m.tree.config.Progress; p != nil && (m.handled%256 == 0 || n > 1<<20) {
		p(m.handled, m.bytes)
	}
}

// maxProblems bounds what a report lists of each kind.
const maxProblems = 10_000

func (m *mirror) refuse(name, why string) {
	if len(m.report.Refused) < maxProblems {
		m.report.Refused = append(m.report.Refused, Problem{name, why})
	}
}

func (m *mirror) conflict(name, why string) {
	if len(m.report.Conflicts) < maxProblems {
		m.report.Conflicts = append(m.report.Conflicts, Problem{name, why})
	}
}

// travelsNot reports whether an element of name is one that travels in neither
// direction.
func (m *mirror) travelsNot(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), m.tree.config.skips)
}

// badName returns why a name is not allowed in a workspace; "" if it is.
func badName(name string) string {
	switch {
	case strings.HasPrefix(name, "/"):
		return "an absolute name"
	case strings.ContainsAny(name, "\x00"):
		return "a NUL in the name"
	case path.Clean(name) != name || strings.HasPrefix(name, "../") || name == "..":
		return "a name that leads elsewhere"
	case len(name) > 4096:
		return "a name that is too long"
	}
	return ""
}
