package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/modes"
)

// kindOf is what file(1) says of some content.
type kindOf struct{ text, mime, charset string }

// fileHead is how much of a file is looked at.
const fileHead = 1 << 20

func file(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... FILE...",
		"b,brief i,mime ,mime-type ,mime-encoding L,dereference h,no-dereference z,uncompress f,files-from: F,separator: 0,print0 k,keep-going n,no-buffer N,no-pad p,preserve-date r,raw s,special-files ,extension e,exclude: P,parameter: E m,magic-file: S,no-sandbox")
	if !ok {
		return
	}
	f := &filer{Work: w, separator: ":"}
	for _, s := range sets {
		switch s.Name {
		case "brief":
			f.brief = true
		case "mime":
			f.mime, f.charset = true, true
		case "mime-type":
			f.mime = true
		case "mime-encoding":
			f.charset = true
		case "dereference":
			f.follow = true
		case "no-dereference":
			f.follow = false
		case "separator":
			f.separator = s.Value
		case "no-pad":
			f.noPad = true
		case "print0":
			f.nul = true
		case "no-buffer", "preserve-date", "raw", "special-files", "keep-going", "E", "no-sandbox":
		case "files-from":
			w.EachLine([]string{s.Value}, '\n', func(line []byte) bool {
				names = append(names, strings.TrimSuffix(string(line), "\n"))
				return true
			})
		default:
			w.Refuse("--" + s.Name)
			return
		}
	}
	if len(names) == 0 {
		_ = w.Out.Flush()
		fmt.Fprintf(w.Stderr, "Usage: file [-bhiLNr0] [--mime-type] [--mime-encoding] FILE...\n")
		w.Status = 1
		return
	}
	width := 0
	for _, n := range names {
		width = max(width, gnu.Columns(n))
	}
	for _, n := range names {
		f.one(n, width)
	}
}

type filer struct {
	*gnu.Work
	brief, mime, charset, follow, noPad, nul bool
	separator                                string
}

func (f *filer) one(name string, width int) {
	shown := name
	if name == "-" {
		shown = "/dev/stdin"
	}
	text := f.describe(name)
	if f.brief {
		fmt.Fprintln(f.Out, text)
		return
	}
	end := f.separator
	if f.nul {
		end = "\x00"
	}
	pad := ""
	if !f.noPad && name != "-" {
		pad = strings.Repeat(" ", width-gnu.Columns(name))
	}
	fmt.Fprintf(f.Out, "%s%s %s%s\n", shown, end, pad, text)
}

func (f *filer) describe(name string) string {
	if name == "-" {
		head, _ := io.ReadAll(io.LimitReader(f.Stdin, fileHead))
		return f.word(classify(head))
	}
	fi, err := gnu.Lstat(f.Work, name)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		target, _ := f.FS.Readlink(f.Path(name))
		to, e := f.FS.Stat(f.Path(name))
		switch {
		case e != nil:
			return f.word(kindOf{"broken symbolic link to " + target, "inode/symlink", "binary"})
		case !f.follow:
			return f.word(kindOf{"symbolic link to " + target, "inode/symlink", "binary"})
		}
		fi = to
	}
	if err != nil {
		return fmt.Sprintf("cannot open `%s' (%s)", name, command.Reason(err))
	}
	if !fi.Mode().IsRegular() {
		return f.word(special(fi))
	}
	r, err := f.OpenFile(name)
	if err != nil {
		return f.word(kindOf{"regular file, no read permission", "application/x-no-read", "binary"})
	}
	head, err := io.ReadAll(io.LimitReader(r, fileHead))
	if e := r.Close(); err == nil {
		err = e
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "ERROR: cannot read `" + name + "' (" + command.Reason(err) + ")"
	}
	return f.word(classify(head))
}

func special(fi fs.FileInfo) kindOf {
	name := modes.FileKind(fi.Mode(), 1)
	switch {
	case fi.IsDir() && fi.Mode()&fs.ModeSticky != 0:
		return kindOf{"sticky, directory", "inode/directory", "binary"}
	case fi.IsDir():
		return kindOf{"directory", "inode/directory", "binary"}
	case fi.Mode()&fs.ModeCharDevice != 0:
		return kindOf{"character special", "inode/chardevice", "binary"}
	case fi.Mode()&fs.ModeDevice != 0:
		return kindOf{"block special", "inode/blockdevice", "binary"}
	}
	return kindOf{name, "inode/" + name, "binary"}
}

func (f *filer) word(k kindOf) string {
	switch {
	case f.mime && f.charset && k.mime == "inode/symlink":
		return k.mime + "; charset=binary"
	case f.mime && f.charset:
		return k.mime + "; charset=" + k.charset
	case f.mime:
		return k.mime
	case f.charset:
		return k.charset
	}
	return k.text
}

// encoding is how text is written; binary when it is none.
func encoding(b []byte) (name, charset string) {
	plain, high, c1, ctrl := true, false, false, false
	for _, c := range b {
		switch {
		case c >= 0x80 && c < 0xa0 && c != 0x85:
			c1 = true
			fallthrough
		case c >= 0x80:
			plain, high = false, true
		case c < 7 || c > 13 && c < 27 || c > 27 && c < 32 || c == 11 || c == 127:
			ctrl = true
		}
	}
	bom := strings.HasPrefix(string(b), "\xef\xbb\xbf")
	switch {
	case len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff):
		if b[0] == 0xff {
			return "Unicode text, UTF-16, little-endian text", "utf-16le"
		}
		return "Unicode text, UTF-16, big-endian text", "utf-16be"
	case ctrl:
		return "", "binary"
	case plain:
		return "ASCII text", "us-ascii"
	case valid(b) && bom:
		return "Unicode text, UTF-8 (with BOM) text", "utf-8"
	case valid(b):
		return "Unicode text, UTF-8 text", "utf-8"
	case high && c1:
		return "Non-ISO extended-ASCII text", "unknown-8bit"
	}
	return "ISO-8859 text", "iso-8859-1"
}

// valid is utf8.Valid of a head, whose last character may be cut.
func valid(b []byte) bool {
	if len(b) == fileHead {
		for i := 0; i < 3 && len(b) > 0 && !utf8.RuneStart(b[len(b)-1]); i++ {
			b = b[:len(b)-1]
		}
		if len(b) > 0 {
			b = b[:len(b)-1]
		}
	}
	return utf8.Valid(b)
}

const longLine = 300

// lines is what file says about how the lines of a text are.
func linesOf(b []byte) string {
	s := string(b)
	crlf := strings.Count(s, "\r\n")
	lf := strings.Count(s, "\n") - crlf
	cr := strings.Count(s, "\r") - crlf
	longest := 0
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		longest = max(longest, len(line))
	}
	out := ""
	if longest > longLine {
		out += fmt.Sprintf(", with very long lines (%d)", longest)
	}
	var ends []string
	if crlf > 0 {
		ends = append(ends, "CRLF")
	}
	if cr > 0 {
		ends = append(ends, "CR")
	}
	if lf > 0 && len(ends) > 0 {
		ends = append(ends, "LF")
	}
	switch {
	case len(ends) > 0:
		out += ", with " + strings.Join(ends, ", ") + " line terminators"
	case lf == 0:
		out += ", with no line terminators"
	}
	if strings.Contains(s, "\x1b") {
		out += ", with escape sequences"
	}
	if strings.Contains(s, "\b") {
		out += ", with overstriking"
	}
	return out
}

// gzipTime is a time as file writes it.
func gzipTime(t uint32) string {
	return date.Format("%a %b %e %H:%M:%S %Y", time.Unix(int64(t), 0).UTC())
}
