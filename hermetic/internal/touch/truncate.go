package touch

import (
	"errors"
	"math"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// truncater is one call of truncate.
type truncater struct {
	*gnu.Work
	op               byte // 0: exactly
	size             int64
	set              bool
	noCreate, blocks bool
	reference        int64
	hasReference     bool
}

func truncate(w *gnu.Work) {
	sets, names, ok := w.Options("OPTION... FILE...", "c,no-create o,io-blocks r,reference: s,size:")
	if !ok {
		return
	}
	t := &truncater{Work: w}
	for _, s := range sets {
		switch s.Name {
		case "no-create":
			t.noCreate = true
		case "io-blocks":
			t.blocks = true
		case "reference":
			fi, err := gnu.Stat(w, s.Value)
			if err != nil {
				w.Die(1, "cannot stat %s: %s", gnu.QuoteShell(s.Value), command.Reason(err))
				return
			}
			t.reference, t.hasReference = fi.Size(), true
		case "size":
			if !t.parse(s.Value) {
				return
			}
		}
	}
	switch {
	case !t.set && !t.hasReference:
		w.TryHelp("you must specify either %s or %s", gnu.Quote("--size"), gnu.Quote("--reference"))
		return
	case t.hasReference && t.set && t.op == 0:
		w.TryHelp("you must specify a relative %s with %s", gnu.Quote("--size"), gnu.Quote("--reference"))
		return
	case t.blocks && !t.set:
		w.TryHelp("%s was specified but %s was not", gnu.Quote("--io-blocks"), gnu.Quote("--size"))
		return
	case len(names) == 0:
		w.TryHelp("missing file operand")
		return
	}
	for _, n := range names {
		t.one(n)
	}
}

func (t *truncater) parse(value string) bool {
	s := strings.TrimLeft(value, " \t\n")
	if s != "" && strings.IndexByte("<>/%", s[0]) >= 0 {
		t.op, s = s[0], strings.TrimLeft(s[1:], " \t")
	}
	sign := int64(1)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if t.op != 0 {
			t.TryHelp("multiple relative modifiers specified")
			return false
		}
		t.op = '+'
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	n, err := gnu.Size(s, "EGkKMPTYZ0")
	if err != nil {
		tail := ""
		if err == gnu.ErrOverflow {
			tail = ": " + err.Error()
		}
		t.Die(1, "Invalid number: %s%s", gnu.Quote(value), tail)
		return false
	}
	if n == 0 && (t.op == '/' || t.op == '%') {
		t.Die(1, "division by zero")
		return false
	}
	t.size, t.set = sign*n, true
	return true
}

func (t *truncater) one(name string) {
	flag := syscall.O_WRONLY | gnu.Flag(!t.noCreate, syscall.O_CREAT)
	f, err := t.FS.OpenFile(t.Path(name), flag|syscall.O_NONBLOCK, 0o666&^t.Umask)
	if err != nil {
		if !t.noCreate || !errors.Is(err, syscall.ENOENT) {
			t.Fault("cannot open %s for writing: %s", gnu.QuoteShell(name), command.Reason(err))
		}
		return
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fault("cannot fstat %s: %s", gnu.QuoteShell(name), command.Reason(err))
		return
	}
	size, ok := t.want(fi.Size())
	if !ok {
		t.Fault("overflow extending size of file %s", gnu.QuoteShell(name))
		return
	}
	if err := f.Truncate(size); err != nil {
		t.Fault("failed to truncate %s at %d bytes: %s", gnu.QuoteShell(name), size, command.Reason(err))
	}
}

// blockSize is what --io-blocks counts in.
const blockSize = 4096

func (t *truncater) want(now int64) (int64, bool) {
	n := t.size
	if t.hasReference {
		now = t.reference
	}
	if t.blocks {
		if n > math.MaxInt64/blockSize || n < math.MinInt64/blockSize {
			return 0, false
		}
		n *= blockSize
	}
	switch {
	case !t.set:
		return now, true
	case t.op == 0:
		return n, true
	case t.op == '+':
		if n > math.MaxInt64-now {
			return 0, false
		}
		return max(0, now+n), true
	case t.op == '<':
		return min(now, n), true
	case t.op == '>':
		return max(now, n), true
	case t.op == '/':
		return now / n * n, true
	}
	up := (now + n - 1) / n
	if now > math.MaxInt64-n {
		return 0, false
	}
	return up * n, true
}
