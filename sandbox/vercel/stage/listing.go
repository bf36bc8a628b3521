package stage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Listing is what the other side has, without the contents. See List.
type Listing struct {
	remote  map[string]*remote // directories, and what needs not come back
	missing []string           // files and links that have to, sorted
	refused []Problem
}

// Missing lists the paths that MirrorListed wants in its archive, sorted.
func (l *Listing) Missing() []string { return l.missing }

// Bounds of a listing.
const (
	maxListing = 256 << 20 // bytes, unpacked
	maxRecord  = 16 << 10  // bytes of one record
)

// maxDigits bounds the digits of a size, so that no sum of sizes overflows.
const maxDigits = 18

// List reads a list of what the other side has, gzip-compressed. Every record ends
// in a NUL. Two are for each path, "KIND MODE SIZE NAME", in the letters of find's
// %y, in octal and in bytes, and the target of a link; the top directory, which has
// no name, has to be among them. Then an empty record, the sums of the regular
// files in the form of sha256sum -z, and "end".
//
// Threat: the list is made where the program was: it is cut short or empty, so that
// all seems deleted, it leads out, or it never ends -> only a whole list counts, names
// are judged as those of an archive, records and bytes are bounded. Left over: who
// forges the list can hide changes and pretend deletions, which the program can make
// as well.
func (t *Tree) List(ctx context.Context, from io.Reader) (*Listing, error) {
	l, err := t.list(ctx, from)
	if err != nil && !errors.Is(err, errTooLarge) {
		return nil, &UnreadableError{err}
	}
	return l, err
}

func (t *Tree) list(ctx context.Context, from io.Reader) (*Listing, error) {
	stream, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	records := &records{bufio.NewReaderSize(&bounded{stream, maxListing}, maxRecord)}
	m := newMirror(ctx, t, "")
	if err := m.listed(records); err != nil {
		return nil, err
	}
	if err := m.summed(records); err != nil {
		return nil, err
	}
	if _, err := records.ReadByte(); !errors.Is(err, io.EOF) { // it also checks gzip's sum
		return nil, errors.Join(errors.New("the list has more than its end"), err)
	}
	l := &Listing{remote: m.remote, refused: m.report.Refused}
	for name, r := range m.remote {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.Mode.IsDir() || m.unchanged(name, r) {
			continue
		}
		if r.Size > t.config.MaxBytes-m.bytes {
			return nil, tooLarge("bytes", t.config.MaxBytes)
		}
		m.bytes += r.Size
		l.missing = append(l.missing, name)
		delete(l.remote, name)
	}
	slices.Sort(l.missing)
	return l, nil
}

// unchanged reports whether the content that is there was sent, or is here already.
func (m *mirror) unchanged(name string, r *remote) bool {
	if r.Mode.IsRegular() && !r.sent {
		return false // its sum is unknown
	}
	was := m.tree.entries[name]
	if was != nil && !was.shared && was.same(&r.Entry) {
		return true
	}
	info, err := m.tree.root.Lstat(name)
	if err != nil || m.obstacle(name) != "" {
		return false
	}
	return m.holds(name, info, &r.Entry) || was != nil && was.onlyMode(&r.Entry) && m.untouched(name, info, was)
}

// onlyMode reports whether what is there has the content that was sent, whatever its
// permissions.
func (e *Entry) onlyMode(r *Entry) bool {
	return !e.shared && e.sent && e.Mode.IsRegular() && r.Mode.IsRegular() && e.sum == r.sum
}

// records are texts that end in a NUL.
type records struct{ *bufio.Reader }

func (r *records) next() (string, error) {
	b, err := r.ReadSlice(0)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", fmt.Errorf("the list of what is there: %w", err)
	}
	return string(b[:len(b)-1]), nil
}

// listed reads the paths.
func (m *mirror) listed(from *records) error {
	m.above = map[string]string{}
	for at := 0; ; at++ {
		text, err := from.next()
		if err != nil {
			return err
		}
		if text == "" {
			break
		}
		if at > m.tree.config.MaxFiles {
			return tooLarge("files", m.tree.config.MaxFiles)
		}
		link, err := from.next()
		if err != nil {
			return err
		}
		if err := m.listOne(text, link); err != nil {
			return err
		}
	}
	if !m.whole {
		return errors.New("the list of what is there has no top directory")
	}
	return m.ctx.Err()
}

func (m *mirror) listOne(text, link string) error {
	part := strings.SplitN(text, " ", 4)
	if len(part) != 4 || len(part[2]) > maxDigits {
		return fmt.Errorf("the list of what is there holds %q", text)
	}
	mode, err := strconv.ParseUint(part[1], 8, 12)
	size, e := strconv.ParseUint(part[2], 10, 63)
	if err = errors.Join(err, e); err != nil {
		return fmt.Errorf("the list of what is there: %w", err)
	}
	kind, name := part[0], part[3]
	if name == "" {
		m.whole = m.whole || kind == "d"
		return nil
	}
	if m.travelsNot(name) {
		return nil
	}
	if why := badName(name); why != "" {
		m.refuse(name, why)
		return nil
	}
	r := &remote{at: notFetched, Entry: Entry{Path: name, Mode: fs.FileMode(mode) & fs.ModePerm}}
	switch kind {
	case "f":
		r.Size = int64(size)
	case "d":
		r.Mode |= fs.ModeDir
	case "l":
		r.Mode, r.Link = fs.ModeSymlink|fs.ModePerm, link
	case "s": // tar passes over it, too
		return nil
	default:
		m.refuse(name, "a device, FIFO or socket")
		return nil
	}
	m.remote[name] = r
	return nil
}

// notFetched is the place of what is in no archive.
const notFetched = -1

// summed reads the sums of regular files.
func (m *mirror) summed(from *records) error {
	for {
		text, err := from.next()
		if err != nil {
			return err
		}
		if text == "end" {
			return m.ctx.Err()
		}
		sum, name, ok := strings.Cut(text, "  ./")
		bin, err := hex.DecodeString(sum)
		if !ok || err != nil || len(bin) != sha256.Size {
			return fmt.Errorf("the list of what is there holds %q", text)
		}
		if r := m.remote[name]; r != nil && r.Mode.IsRegular() {
			r.sum, r.sent = [sha256.Size]byte(bin), true
		}
	}
}

// ErrMoved is a workspace that changed after List in a way that needs more of the
// other side than was listed as missing. Nothing was changed then.
var ErrMoved = errors.New("the workspace changed while its changes were fetched")

// MirrorListed is Mirror with an archive that has the top directory and Missing
// alone. A nil archive is one of nothing.
func (t *Tree) MirrorListed(ctx context.Context, l *Listing, archive io.ReadSeeker, aside string) (Report, error) {
	top := archive == nil
	if archive == nil {
		var err error
		if archive, err = nothing(); err != nil {
			return Report{}, err
		}
	}
	m := newMirror(ctx, t, aside)
	m.whole = top
	for _, r := range l.remote {
		own := *r
		m.note(&own)
	}
	m.report.Refused = slices.Clone(l.refused)
	return m.run(archive)
}

// nothing is an archive without an entry.
func nothing() (io.ReadSeeker, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := errors.Join(tar.NewWriter(z).Close(), z.Close())
	return bytes.NewReader(b.Bytes()), err
}

// lacks reports whether the plan needs something that was not fetched.
func (m *mirror) lacks() bool {
	for name, do := range m.write {
		if do != chmod && m.remote[name].at == notFetched {
			return true
		}
	}
	return slices.ContainsFunc(m.report.Conflicts, func(p Problem) bool {
		r := m.remote[p.Path]
		return r != nil && r.at == notFetched && r.Mode.IsRegular()
	})
}
