package tar

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/modes"
)

// tell is what -v writes of a member while it is written or extracted.
func (t *archiver) tell(w io.Writer, h *tar.Header, name string) {
	if t.verbose > 1 {
		t.long(w, h, name)
		return
	}
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/") + "/"
	}
	_, _ = io.WriteString(w, printable(name)+"\n")
}

// long is the line of tar -tv.
func (t *archiver) long(w io.Writer, h *tar.Header, name string) {
	user, group := h.Uname, h.Gname
	if user == "" || t.numeric {
		user = strconv.Itoa(h.Uid)
	}
	if group == "" || t.numeric {
		group = strconv.Itoa(h.Gid)
	}
	size := strconv.FormatInt(h.Size, 10)
	t.width = max(t.width, len(user)+1+len(group)+1+len(size))
	layout := "%Y-%m-%d %H:%M"
	if t.fullTime {
		layout = "%Y-%m-%d %H:%M:%S"
	}
	tail := ""
	switch h.Typeflag {
	case tar.TypeSymlink:
		tail = " -> " + printable(h.Linkname)
	case tar.TypeLink:
		tail = " link to " + printable(h.Linkname)
	case tar.TypeDir:
		name = strings.TrimSuffix(name, "/") + "/"
	}
	_, _ = fmt.Fprintf(w, "%s %s/%s %*s %s %s%s\n", modeString(h), user, group, t.width-len(user)-len(group)-2, size,
		date.Format(layout, h.ModTime.In(date.Zone(t.Getenv("TZ")))), printable(name), tail)
}

func modeString(h *tar.Header) string {
	m := h.FileInfo().Mode()
	if h.Typeflag == tar.TypeLink {
		return "h" + modes.String(m & fs.ModePerm)[1:]
	}
	return modes.String(m)
}

// printable escapes what must not be written as it is, as tar's default quoting
// does.
func printable(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f || r == 0xfffd }) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if r == 0xfffd {
			b.Reset()
			break
		}
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r >= '\a' && r <= '\r':
			b.WriteString(`\` + "abtnvfr"[r-'\a':r-'\a'+1])
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\%03o`, r)
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() > 0 {
		return b.String()
	}
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || c < ' ' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
