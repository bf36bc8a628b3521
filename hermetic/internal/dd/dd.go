package dd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// dumper is one call of dd.
type dumper struct {
	*gnu.Work
	in, out             string
	inSet, outSet       bool
	ibs, obs            int64
	count               int64
	countBytes          bool
	skip, seek          int64
	skipBytes, seekByte bool
	full                bool
	appending           bool
	conv                map[string]bool
	status              string

	fullIn, partIn, fullOut, partOut, wrote int64
}

const ddMaxBlock = 64 << 20

func dd(w *gnu.Work) {
	_, operands, ok := w.Options("[OPERAND]...", "")
	if !ok {
		return
	}
	d := &dumper{Work: w, ibs: 512, obs: 512, count: -1, conv: map[string]bool{}}
	for _, o := range operands {
		if !d.operand(o) {
			return
		}
	}
	d.run()
}

func (d *dumper) operand(o string) bool {
	name, value, ok := strings.Cut(o, "=")
	if !ok {
		d.TryHelp("unrecognized operand %s", gnu.Quote(o))
		return false
	}
	switch name {
	case "if":
		d.in, d.inSet = value, true
	case "of":
		d.out, d.outSet = value, true
	case "bs", "ibs", "obs", "cbs":
		n, ok := d.number(value)
		if !ok || n == 0 || n > ddMaxBlock {
			if ok {
				d.Die(1, "invalid number: %s%s", gnu.Quote(value), map[bool]string{true: ": Value too large for defined data type"}[n > ddMaxBlock])
			}
			return false
		}
		if name != "obs" && name != "cbs" {
			d.ibs = n
		}
		if name != "ibs" && name != "cbs" {
			d.obs = n
		}
	case "count":
		d.countBytes = d.countBytes || strings.HasSuffix(value, "B")
		d.count, ok = d.number(value)
	case "skip", "iseek":
		d.skipBytes = d.skipBytes || strings.HasSuffix(value, "B")
		d.skip, ok = d.number(value)
	case "seek", "oseek":
		d.seekByte = d.seekByte || strings.HasSuffix(value, "B")
		d.seek, ok = d.number(value)
	case "status":
		d.status = value
		if value != "none" && value != "noxfer" && value != "progress" {
			d.TryHelp("invalid status level: %s", gnu.Quote(value))
			return false
		}
	case "conv", "iflag", "oflag":
		return d.words(name, value)
	default:
		d.TryHelp("unrecognized operand %s", gnu.Quote(o))
		return false
	}
	return ok
}

// number reads "2", "4k", "3x1024".
func (d *dumper) number(s string) (int64, bool) {
	n := int64(1)
	parts := strings.Split(s, "x")
	if len(parts) > 2 {
		parts = []string{"x"}
	}
	for _, part := range parts {
		if strings.HasSuffix(part, "B") && len(part) > 1 && isDigit(part[len(part)-2]) {
			part = part[:len(part)-1]
		}
		v, err := gnu.Size(part, "bcEGkKMPTwYZ0")
		if err != nil || v != 0 && n > (1<<62)/v || !isDigit((part + "x")[0]) {
			d.Die(1, "invalid number: %s", gnu.Quote(s))
			return 0, false
		}
		n *= v
	}
	return n, true
}

func (d *dumper) words(kind, value string) bool {
	known := map[string]string{
		"conv":  "lcase ucase notrunc excl nocreat noerror sync swab fsync fdatasync sparse",
		"iflag": "fullblock count_bytes skip_bytes direct nonblock binary text nocache noatime nofollow",
		"oflag": "append seek_bytes direct dsync sync nonblock binary text nocache",
	}[kind]
	for word := range strings.SplitSeq(value, ",") {
		if !strings.Contains(" "+known+" ", " "+word+" ") {
			if kind == "conv" {
				d.TryHelp("invalid conversion: %s", gnu.Quote(word))
			} else {
				d.TryHelp("invalid %s flag: %s", map[string]string{"iflag": "input", "oflag": "output"}[kind], gnu.Quote(word))
			}
			return false
		}
		switch word {
		case "fullblock":
			d.full = true
		case "count_bytes":
			d.countBytes = true
		case "skip_bytes":
			d.skipBytes = true
		case "seek_bytes":
			d.seekByte = true
		case "append":
			d.appending = true
		}
		if kind == "conv" {
			d.conv[word] = true
		}
	}
	if d.conv["lcase"] && d.conv["ucase"] {
		d.Die(1, "cannot combine lcase and ucase")
		return false
	}
	return true
}

func (d *dumper) run() {
	in, ok := d.openIn()
	if !ok {
		return
	}
	defer in.Close()
	out, ok := d.openOut()
	if !ok {
		return
	}
	begin := d.Now()
	err := d.copy(in, out)
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil && d.Ctx.Err() == nil && !errors.Is(err, syscall.EPIPE) {
		name := "'standard output'"
		if d.outSet {
			name = gnu.QuoteShell(d.out)
		}
		var re *readError
		if errors.As(err, &re) {
			d.Fault("error reading %s: %s", choose(d.inSet, gnu.QuoteShell(d.in), "'standard input'"), command.Reason(re.err))
		} else {
			d.Fault("error writing %s: %s", name, command.Reason(err))
		}
	}
	d.report(d.Now().Sub(begin))
}

type readError struct{ err error }

func (r *readError) Error() string { return r.err.Error() }

func (d *dumper) openIn() (io.ReadCloser, bool) {
	if !d.inSet {
		r, _ := d.Open("-")
		return r, true
	}
	r, err := d.OpenFile(d.in)
	if err != nil {
		d.Die(1, "failed to open %s: %s", gnu.QuoteShell(d.in), command.Reason(err))
		return nil, false
	}
	return r, true
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (d *dumper) openOut() (io.WriteCloser, bool) {
	offset := d.seek
	if !d.seekByte {
		offset *= d.obs
	}
	if !d.outSet {
		return nopCloser{d.Out}, true
	}
	flag := syscall.O_WRONLY | gnu.Flag(!d.conv["nocreat"], syscall.O_CREAT) | gnu.Flag(d.conv["excl"], syscall.O_EXCL) | gnu.Flag(d.appending, syscall.O_APPEND)
	if !d.conv["notrunc"] && offset == 0 {
		flag |= syscall.O_TRUNC
	}
	f, err := d.FS.OpenFile(d.Path(d.out), flag, 0o666&^d.Umask)
	if err != nil {
		d.Die(1, "failed to open %s: %s", gnu.QuoteShell(d.out), command.Reason(err))
		return nil, false
	}
	fi, err := f.Stat()
	if err == nil && offset > 0 && fi.Mode().IsRegular() {
		if !d.conv["notrunc"] {
			err = f.Truncate(offset)
		}
		if err == nil {
			_, err = f.Seek(offset, io.SeekStart)
		}
	}
	if err != nil {
		_ = f.Close()
		d.Die(1, "failed to truncate to %d bytes in output file %s: %s", offset, gnu.QuoteShell(d.out), command.Reason(err))
		return nil, false
	}
	return f, true
}

// copy moves the blocks.
func (d *dumper) copy(in io.Reader, out io.Writer) error {
	skip := d.skip
	if !d.skipBytes {
		skip *= d.ibs
	}
	if n, err := io.CopyN(io.Discard, in, skip); err != nil && n < skip && !errors.Is(err, io.EOF) {
		return &readError{err}
	}
	left, blocks := int64(-1), d.count
	if d.countBytes {
		left, blocks = d.count, -1
	}
	buf := make([]byte, d.ibs)
	var pending bytes.Buffer
	for blocks != 0 && left != 0 && d.Ctx.Err() == nil {
		want := buf
		if left > 0 && left < d.ibs {
			want = buf[:left]
		}
		n, err := d.read(in, want)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return &readError{err}
		}
		if n == len(buf) {
			d.fullIn++
		} else {
			d.partIn++
		}
		blocks--
		if left > 0 {
			left -= int64(n)
		}
		data := d.convert(want[:n])
		if d.ibs == d.obs {
			if err := d.write(out, data); err != nil {
				return err
			}
			continue
		}
		pending.Write(data)
		for int64(pending.Len()) >= d.obs {
			if err := d.write(out, pending.Next(int(d.obs))); err != nil {
				return err
			}
		}
	}
	if pending.Len() > 0 {
		return d.write(out, pending.Bytes())
	}
	return nil
}

func (d *dumper) read(in io.Reader, buf []byte) (int, error) {
	if d.full {
		n, err := io.ReadFull(in, buf)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return n, err
	}
	return in.Read(buf)
}

func (d *dumper) convert(b []byte) []byte {
	if d.conv["sync"] && int64(len(b)) < d.ibs {
		b = append(b, make([]byte, d.ibs-int64(len(b)))...)
	}
	if d.conv["swab"] {
		for i := 0; i+1 < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
	}
	for i, c := range b {
		if d.conv["ucase"] && c >= 'a' && c <= 'z' || d.conv["lcase"] && c >= 'A' && c <= 'Z' {
			b[i] = c ^ 0x20
		}
	}
	return b
}

func (d *dumper) write(out io.Writer, b []byte) error {
	n, err := out.Write(b)
	d.wrote += int64(n)
	if int64(n) == d.obs {
		d.fullOut++
	} else if n > 0 {
		d.partOut++
	}
	return err
}

func (d *dumper) report(took time.Duration) {
	if d.status == "none" {
		return
	}
	_ = d.Out.Flush()
	fmt.Fprintf(d.Stderr, "%d+%d records in\n%d+%d records out\n", d.fullIn, d.partIn, d.fullOut, d.partOut)
	if d.status == "noxfer" {
		return
	}
	s := max(took.Seconds(), 1e-6)
	size := fmt.Sprintf("%d bytes", d.wrote)
	if d.wrote == 1 {
		size = "1 byte"
	}
	if d.wrote >= 1000 {
		size += " (" + ddSize(d.wrote, 1000)
		if d.wrote >= 1024 {
			size += ", " + ddSize(d.wrote, 1024)
		}
		size += ")"
	}
	fmt.Fprintf(d.Stderr, "%s copied, %.6g s, %s/s\n", size, s, ddSize(int64(float64(d.wrote)/s), 1000))
}

// ddSize rounds to the nearest, as dd does.
func ddSize(n, base int64) string {
	letters, i := "KMGTPE", "i"
	if base == 1000 {
		letters, i = "kMGTPE", ""
	}
	f, power := float64(n), -1
	for f >= float64(base) && power+1 < len(letters) {
		f /= float64(base)
		power++
	}
	switch {
	case power < 0:
		return fmt.Sprintf("%d B", n)
	case f < 9.95:
		return fmt.Sprintf("%.1f %c%sB", f, letters[power], i)
	}
	return fmt.Sprintf("%.0f %c%sB", f, letters[power], i)
}

func choose(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
