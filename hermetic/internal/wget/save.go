package wget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/fetch"
	"egressd/hermetic/vfs"
)

// file opens where the body goes; how much of it is there already is x.had.
func (x *download) file(a *fetch.Answer) (w io.Writer, f vfs.File, shown string, err error) {
	if x.out != nil {
		if o, ok := x.out.(vfs.File); ok && (x.try > 1 || x.s.resume) && a.Resp.StatusCode != http.StatusPartialContent {
			x.had = 0
			if err := o.Truncate(0); err != nil {
				return nil, nil, "", err
			}
		}
		shown := x.s.output
		if shown == "-" {
			shown = "STDOUT"
		}
		return x.out, nil, shown, nil
	}
	if x.s.disposition && !x.chosen {
		if _, params, err := mime.ParseMediaType(a.Resp.Header.Get("Content-Disposition")); err == nil {
			if name := fetch.SafeName(params["filename"]); name != "" {
				x.name = x.placed(name)
			}
		}
	}
	how := syscall.O_TRUNC
	switch {
	case x.had > 0 && a.Resp.StatusCode == http.StatusPartialContent:
		how = syscall.O_APPEND
	case !x.chosen && !x.s.newer && !x.s.resume:
		name, ok := fetch.UnusedName(x.c, x.name, 10_000)
		if !ok {
			return nil, nil, x.name, syscall.EEXIST
		}
		x.name, how = name, syscall.O_EXCL
	}
	if how != syscall.O_APPEND {
		x.had = 0
	}
	if err := fetch.Mkdirs(x.c, x.c.Path(x.name), 0o777); err != nil {
		return nil, nil, x.name, err
	}
	f, err = fetch.Create(x.c, x.c.Path(x.name), how)
	x.chosen = err == nil
	return f, f, x.name, err
}

// Save brings the body to its file.
func (x *download) Save(ctx context.Context, a *fetch.Answer) (status int, again bool) {
	length := a.Resp.ContentLength
	x.tellLength(a)
	w, f, shown, err := x.file(a)
	if err != nil {
		fmt.Fprintf(x.log, "%s: %s\n\nCannot write to ‘%s’ (%s).\n", shown, command.Reason(err), shown, command.Reason(err))
		return WgetFile, false
	}
	x.chat("Saving to: ‘%s’\n\n", shown)
	began := x.c.Now()
	got, rerr, werr := x.copy(a, w)
	if f != nil {
		if err := f.Close(); werr == nil {
			werr = err
		}
	}
	speed := rate(got, x.c.Now().Sub(began))
	switch {
	case werr != nil && errors.Is(x.stdout.Err, fetch.ErrPipe):
		return WgetFile, false // silently: a real one is killed by SIGPIPE
	case werr != nil:
		fmt.Fprintf(x.log, "%s (%s) - Cannot write to ‘%s’ (%s).\n", x.stamp(), speed, shown, command.Reason(werr))
		return WgetFile, false
	case rerr != nil && ctx.Err() != nil:
		return wgetNetwork, false
	case rerr != nil:
		x.chat("%s (%s) - Connection closed at byte %d. ", x.stamp(), speed, x.had+got)
		return wgetNetwork, true
	}
	x.stampFile(a)
	x.fetched++
	x.total += got
	x.tellSaved(shown, speed, got, length)
	return 0, false
}

func (x *download) tellLength(a *fetch.Answer) {
	length := a.Resp.ContentLength
	kind, _, _ := strings.Cut(a.Resp.Header.Get("Content-Type"), ";")
	shown := "unspecified"
	if length >= 0 {
		shown = strconv.FormatInt(length, 10)
		if length >= 1024 {
			shown += " (" + human(length) + ")"
		}
	}
	if kind != "" {
		shown += " [" + kind + "]"
	}
	x.chat("Length: %s\n", shown)
}

func (x *download) tellSaved(shown, speed string, got, length int64) {
	size := strconv.FormatInt(got, 10)
	if length >= 0 {
		size = strconv.FormatInt(x.had+got, 10) + "/" + strconv.FormatInt(x.had+length, 10)
	}
	if x.s.brief {
		if shown == "STDOUT" {
			shown = "-"
		}
		x.say("%s URL:%s [%s] -> \"%s\" [%d]\n", x.stamp(), x.to, size, shown, x.try)
		return
	}
	if shown == "STDOUT" {
		x.chat("\n%s (%s) - written to stdout [%s]\n\n", x.stamp(), speed, size)
		return
	}
	x.chat("\n%s (%s) - ‘%s’ saved [%s]\n\n", x.stamp(), speed, shown, size)
}

// stampFile gives the file the time that the server tells, as wget does.
func (x *download) stampFile(a *fetch.Answer) {
	if x.out != nil {
		return
	}
	if at, err := http.ParseTime(a.Resp.Header.Get("Last-Modified")); err == nil {
		_ = x.c.FS.Chtimes(x.c.Path(x.name), time.Time{}, at, true) // a file without the time is still there
	}
}

func (x *download) copy(a *fetch.Answer, w io.Writer) (got int64, rerr, werr error) {
	most := x.c.Budget.Limits.Written
	if w == io.Writer(x.stdout) {
		most = x.c.Budget.Limits.Output
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := a.Body.Read(buf)
		if got += int64(n); got > most {
			return got, nil, syscall.EFBIG
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return got, nil, err
			}
		}
		switch {
		case err == io.EOF:
			return got, nil, nil
		case err != nil:
			return got, err, nil
		}
	}
}

func rate(n int64, d time.Duration) string {
	f := float64(n) / max(d.Seconds(), 1e-6)
	for _, unit := range []string{"B/s", "KB/s", "MB/s"} {
		if f < 1024 {
			return fmt.Sprintf("%.3g %s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.3g GB/s", f)
}
