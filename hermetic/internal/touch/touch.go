package touch

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// toucher is one call of touch.
type toucher struct {
	*gnu.Work
	access, modify bool
	noCreate       bool
	noDeref        bool
	atime, mtime   time.Time
	date           string
	dateSet        bool
	stamp          string
	reference      string
}

func touch(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... FILE...", "a c,no-create d,date: f h,no-dereference m r,reference: t: ,time:")
	if !ok {
		return
	}
	t := &toucher{Work: w}
	for _, s := range sets {
		if !t.option(s) {
			return
		}
	}
	if !t.access && !t.modify {
		t.access, t.modify = true, true
	}
	if !t.times() {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing file operand")
		return
	}
	for _, n := range names {
		if w.Ctx.Err() != nil {
			return
		}
		t.one(n)
	}
}

func (t *toucher) option(s command.Set) bool {
	switch s.Name {
	case "a":
		t.access = true
	case "m":
		t.modify = true
	case "no-create":
		t.noCreate = true
	case "no-dereference":
		t.noDeref = true
	case "date":
		t.date, t.dateSet = s.Value, true
	case "reference":
		t.reference = s.Value
	case "t":
		t.stamp = s.Value
	case "time":
		v, ok := gnu.OneOf(t.Work, "--time", s.Value, "atime,access,use", "mtime,modify")
		if !ok {
			return false
		}
		t.access, t.modify = t.access || v == "atime", t.modify || v == "mtime"
	}
	return true
}

// times works out what the times are set to.
func (t *toucher) times() bool {
	zone := date.Zone(t.Getenv("TZ"))
	now := t.Now().In(zone)
	t.atime, t.mtime = now, now
	if t.stamp != "" && (t.dateSet || t.reference != "") {
		t.TryHelp("cannot specify times from more than one source")
		return false
	}
	if t.reference != "" {
		fi, err := gnu.Stat(t.Work, t.reference)
		if err == nil && t.noDeref {
			fi, err = gnu.Lstat(t.Work, t.reference)
		}
		if err != nil {
			t.Die(1, "failed to get attributes of %s: %s", gnu.QuoteShell(t.reference), command.Reason(err))
			return false
		}
		t.atime, t.mtime = inode.Of(fi).Atime.In(zone), fi.ModTime().In(zone)
	}
	if t.dateSet {
		a, err := date.Parse(t.date, t.atime)
		m, err2 := date.Parse(t.date, t.mtime)
		if err != nil || err2 != nil {
			t.Die(1, "invalid date format %s", gnu.Quote(t.date))
			return false
		}
		t.atime, t.mtime = a, m
	}
	if t.stamp != "" {
		at, ok := stampTime(t.stamp, now)
		if !ok {
			t.Die(1, "invalid date format %s", gnu.Quote(t.stamp))
			return false
		}
		t.atime, t.mtime = at, at
	}
	return true
}

// stampTime reads [[CC]YY]MMDDhhmm[.ss].
func stampTime(s string, now time.Time) (time.Time, bool) {
	digits, secs, dot := strings.Cut(s, ".")
	if strings.Trim(digits+secs, "0123456789") != "" || dot && len(secs) != 2 {
		return now, false
	}
	year := now.Year()
	switch len(digits) {
	case 12:
		year, _ = strconv.Atoi(digits[:4])
		digits = digits[4:]
	case 10:
		year, _ = strconv.Atoi(digits[:2])
		if year += 1900; year < 1969 {
			year += 100
		}
		digits = digits[2:]
	case 8:
	default:
		return now, false
	}
	n := func(s string) int { v, _ := strconv.Atoi(s); return v }
	mon, day, h, m, sec := n(digits[:2]), n(digits[2:4]), n(digits[4:6]), n(digits[6:]), n("0"+secs)
	at := time.Date(year, time.Month(mon), day, h, m, min(sec, 59), 0, now.Location())
	ok := int(at.Month()) == mon && at.Day() == day && at.Hour() == h && at.Minute() == m && sec <= 60
	return at, ok
}

func (t *toucher) one(name string) {
	if name == "-" {
		return
	}
	_, err := gnu.Lstat(t.Work, name)
	if err == nil && !t.noDeref {
		_, err = gnu.Stat(t.Work, name)
	}
	if err != nil {
		if t.noCreate && errors.Is(err, syscall.ENOENT) {
			return
		}
		if t.noDeref {
			t.Fault("setting times of %s: %s", gnu.QuoteShell(name), command.Reason(err))
			return
		}
		if name != "" && errors.Is(err, syscall.ENOENT) {
			if err = t.create(name); errors.Is(err, syscall.EISDIR) {
				err = nil
			}
		}
		if err != nil {
			t.Fault("cannot touch %s: %s", gnu.QuoteShell(name), command.Reason(err))
			return
		}
	}
	var at, mt time.Time
	if t.access {
		at = t.atime
	}
	if t.modify {
		mt = t.mtime
	}
	if err := t.FS.Chtimes(t.Path(name), at, mt, !t.noDeref); err != nil {
		t.Fault("setting times of %s: %s", gnu.QuoteShell(name), command.Reason(err))
	}
}

func (t *toucher) create(name string) error {
	f, err := t.FS.OpenFile(t.Path(name), syscall.O_WRONLY|syscall.O_CREAT, fs.FileMode(0o666)&^t.Umask)
	if err != nil {
		return err
	}
	return f.Close()
}
