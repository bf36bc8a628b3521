package curl

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/fetch"
	"egressd/hermetic/vfs"
)

// destination is where the body of one transfer goes.
type destination struct {
	x      *transfer
	name   string // "" or "-": the standard output
	file   vfs.File
	begun  bool
	fresh  bool  // the name comes from the server: never over another file
	offset int64 // of -C
	skip   bool
	ok     bool
}

// destination reads -o, -O and -J for this URL.
func (x *transfer) destination(t *fetch.Target) (*destination, *fetch.Failure) {
	d := &destination{x: x}
	var o out
	if x.at < len(x.s.outs) {
		o = x.s.outs[x.at]
	} else if x.s.allRemote {
		o.remote = true
	}
	d.name = globName(o.name, x.url.parts)
	if o.remote {
		d.name = fetch.SafeName(path.Base(t.Path))
		if strings.HasSuffix(t.Path, "/") || d.name == "" {
			if !x.g.silent {
				_, _ = x.stderr.Write([]byte("curl: Remote file name has no length!\n"))
			}
			return nil, fetch.Fail(fetch.ExitWrite, "Failed writing received data to disk/application")
		}
		d.fresh = x.s.remoteHeader
	}
	if d.name != "" && d.name != "-" && x.s.outputDir != "" {
		d.name = strings.TrimSuffix(x.s.outputDir, "/") + "/" + d.name
	}
	if x.s.resumed {
		d.offset = x.s.resume
		if info, err := x.c.FS.Stat(x.c.Path(d.name)); d.offset < 0 {
			d.offset = 0
			if err == nil && d.name != "" {
				d.offset = info.Size()
			}
		}
	}
	return d, nil
}

// globName puts what {} and [] stood for in place of #1, #2.
func globName(name string, parts []string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		end := i + 1
		for name[i] == '#' && end < len(name) && end < i+4 && name[end] >= '0' && name[end] <= '9' {
			end++
		}
		if n, err := strconv.Atoi(name[i+1 : end]); err == nil && n >= 1 && n <= len(parts) {
			b.WriteString(parts[n-1])
			i = end - 1
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

func (d *destination) toStdout() bool { return d.name == "" || d.name == "-" }

// most bounds a body that no --max-filesize bounds: files have the budget of
// written bytes, the standard output that of printed ones, so that no variable
// and no pipe is filled without end.
func (d *destination) most() int64 {
	if d.toStdout() {
		return d.x.c.Budget.Limits.Output
	}
	return d.x.c.Budget.Limits.Written
}

// heads writes what -i, -I and -D ask for.
func (d *destination) heads(a *fetch.Answer) *fetch.Failure {
	x := d.x
	switch x.s.dumpTo {
	case "":
	case "-":
		if _, err := x.stdout.Write(a.Heads); err != nil {
			return writeFailed()
		}
	default:
		how := syscall.O_APPEND
		if x.stats.calls == 1 && x.at == 0 {
			how = syscall.O_TRUNC
		}
		f, err := fetch.Create(x.c, x.c.Path(x.s.dumpTo), how)
		if err != nil {
			return writeFailed()
		}
		_, err = f.Write(a.Heads)
		if cerr := f.Close(); err != nil || cerr != nil {
			return writeFailed()
		}
	}
	if x.s.include || x.s.head {
		if d.fresh && !d.begun {
			return nil // it would take a name of its own
		}
		if f := d.write(a.Heads); f != nil {
			return f
		}
	}
	return nil
}

// begin is told of the answer whose body comes.
func (d *destination) begin(a *fetch.Answer) *fetch.Failure {
	if d.fresh {
		if _, params, err := mime.ParseMediaType(a.Resp.Header.Get("Content-Disposition")); err == nil {
			if name := fetch.SafeName(params["filename"]); name != "" {
				d.name = name
				if dir := d.x.s.outputDir; dir != "" {
					d.name = strings.TrimSuffix(dir, "/") + "/" + name
				}
			}
		}
	}
	if a.Resp.StatusCode == http.StatusNotModified && d.x.s.since != "" {
		d.skip = true
	}
	return nil
}

func writeFailed() *fetch.Failure {
	return fetch.Fail(fetch.ExitWrite, "Failed writing body")
}

// open makes the file, with the first byte or at the end.
func (d *destination) open() *fetch.Failure {
	if d.begun || d.toStdout() {
		return nil
	}
	x, full := d.x, d.x.c.Path(d.name)
	if x.s.createDirs {
		if err := fetch.Mkdirs(x.c, full, 0o750); err != nil {
			x.complain("Failed to create directory " + path.Dir(d.name) + ": " + command.Reason(err))
			return fetch.Fail(fetch.ExitWrite, "Failed writing received data to disk/application")
		}
	}
	how := syscall.O_TRUNC
	switch {
	case d.fresh:
		how = syscall.O_EXCL
	case d.offset > 0:
		how = syscall.O_APPEND
	case x.s.noClobber:
		name, ok := fetch.UnusedName(x.c, d.name, 100)
		if !ok {
			return fetch.Fail(fetch.ExitWrite, "Failed writing received data to disk/application")
		}
		d.name, full, how = name, x.c.Path(name), syscall.O_EXCL
	}
	f, err := fetch.Create(x.c, full, how)
	if err != nil {
		x.complain("Failed to open the file " + d.name + ": " + command.Reason(err))
		return fetch.Fail(fetch.ExitWrite, "Failure writing output to destination")
	}
	d.file, d.begun = f, true
	return nil
}

func (x *transfer) complain(text string) {
	if !x.g.silent {
		_, _ = x.stderr.Write([]byte(warning(text)))
	}
}

func (d *destination) write(b []byte) *fetch.Failure {
	if d.toStdout() {
		d.begun = true
		if _, err := d.x.stdout.Write(b); err != nil {
			return writeFailed()
		}
		return nil
	}
	if f := d.open(); f != nil {
		return f
	}
	if n, err := d.file.Write(b); err != nil || n != len(b) {
		if errors.Is(err, syscall.EPIPE) {
			return writeFailed()
		}
		return fetch.Fail(fetch.ExitWrite, "Failure writing output to destination")
	}
	return nil
}

// done is told that the body came whole.
func (d *destination) done(a *fetch.Answer) {
	d.ok = true
	if d.x.s.etagTo != "" {
		tag := a.Resp.Header.Get("ETag")
		if tag != "" {
			tag += "\n"
		}
		_ = fetch.WriteFile(d.x.c, d.x.c.Path(d.x.s.etagTo), func(w io.Writer) error { // losing it loses a hint only, as with curl
			_, err := io.WriteString(w, tag)
			return err
		})
	}
}

// rewind makes ready for another attempt: what came of the last one goes.
func (d *destination) rewind() {
	if d == nil || d.file == nil {
		return
	}
	if err := d.file.Truncate(d.offset); err == nil {
		_, _ = d.file.Seek(d.offset, 0) // a failure shows with the next write
	}
}

// end closes the file; an empty body is an empty file.
func (d *destination) end(f *fetch.Failure) *fetch.Failure {
	if d.skip {
		return nil
	}
	if f == nil && !d.toStdout() && d.x.stats.answer != nil {
		if f := d.open(); f != nil {
			return f
		}
	}
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	full := d.x.c.Path(d.name)
	if f != nil && d.x.s.discard {
		_ = d.x.c.FS.Remove(full) // it is told as failed already
		return nil
	}
	if err != nil {
		return fetch.Fail(fetch.ExitWrite, "Failed writing received data to disk/application")
	}
	if a := d.x.stats.answer; a != nil && d.x.s.remoteTime {
		if at, err := http.ParseTime(a.Resp.Header.Get("Last-Modified")); err == nil {
			_ = d.x.c.FS.Chtimes(full, time.Time{}, at, true) // as with curl: a file without the time is still there
		}
	}
	return nil
}
