package shell

import (
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/stream"
)

// saved is a descriptor as it was before a redirection.
type saved struct {
	n    int
	file *stream.File // nil: it was closed
}

// redirect applies redirections in order, up to the first that fails; undo puts
// things back. The command is not to be run when ok is false.
func (sh *shell) redirect(list []*syntax.Redirect) (undo func(), ok bool) {
	if len(list) == 0 {
		return func() {}, true
	}
	var was []saved
	undo = func() {
		for i := len(was) - 1; i >= 0; i-- {
			sh.setFD(was[i].n, was[i].file)
		}
		was = nil
	}
	defer func() {
		if x := recover(); x != nil {
			undo()
			panic(x)
		}
	}()
	for _, r := range list {
		if !sh.redirectOne(r, &was) {
			return undo, false
		}
	}
	return undo, true
}

// redirectForGood makes redirections last: it gives up what was saved.
func (sh *shell) redirectForGood(list []*syntax.Redirect) bool {
	var was []saved
	ok := true
	for _, r := range list {
		if !sh.redirectOne(r, &was) {
			ok = false
			break
		}
	}
	if !ok {
		for i := len(was) - 1; i >= 0; i-- {
			sh.setFD(was[i].n, was[i].file)
		}
		return false
	}
	for _, s := range was {
		if s.file != nil {
			s.file.Close()
		}
	}
	return true
}

// put makes descriptor n f (nil: closed), and remembers what it was.
func (sh *shell) put(n int, f *stream.File, was *[]saved) bool {
	if f != nil && sh.fds[n] == nil && int64(len(sh.fds)) >= sh.ses.Budget.Limits.Files {
		f.Close()
		sh.tooManyFiles()
	}
	*was = append(*was, saved{n, sh.fds[n]})
	delete(sh.fds, n)
	if f != nil {
		sh.fds[n] = f
	}
	return true
}

func (sh *shell) redirectOne(r *syntax.Redirect, was *[]saved) bool {
	n, name, ok := sh.redirTarget(r)
	if !ok {
		return false
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return sh.putAt(n, name, stream.Text(sh.hereDoc(r)), was)
	case syntax.WordHdoc:
		s := sh.str(r.Word) + "\n"
		sh.checkLen(len(s))
		return sh.putAt(n, name, stream.Text(s), was)
	case syntax.DplIn, syntax.DplOut:
		return sh.duplicate(r, n, name, was)
	}
	path, ok := sh.redirWord(r.Word)
	if !ok {
		return false
	}
	switch r.Op {
	case syntax.RdrAll, syntax.AppAll:
		f, ok := sh.openFor(path, r.Op)
		if !ok {
			return false
		}
		sh.put(1, f, was)
		return sh.put(2, f.Dup(), was)
	}
	f, ok := sh.openFor(path, r.Op)
	if !ok {
		return false
	}
	return sh.putAt(n, name, f, was)
}

// redirTarget is the descriptor that r is about, or the name of {name}>.
func (sh *shell) redirTarget(r *syntax.Redirect) (n int, name string, ok bool) {
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		n = 0
	default:
		n = 1
	}
	if r.N == nil {
		return n, "", true
	}
	if text := r.N.Value; strings.HasPrefix(text, "{") {
		return n, strings.Trim(text, "{}"), true
	}
	n, err := strconv.Atoi(r.N.Value)
	if err != nil || n >= maxFD {
		sh.errorf("%s: Bad file descriptor", r.N.Value)
		return 0, "", false
	}
	return n, "", true
}

// maxFD bounds the numbers of descriptors.
const maxFD = 1 << 16

// putAt is put at n, or at a free descriptor whose number name gets, which then
// stays.
func (sh *shell) putAt(n int, name string, f *stream.File, was *[]saved) bool {
	if name == "" {
		return sh.put(n, f, was)
	}
	for n = 10; sh.fds[n] != nil; n++ {
	}
	if int64(len(sh.fds)) >= sh.ses.Budget.Limits.Files {
		f.Close()
		sh.tooManyFiles()
	}
	base, index, indexed := splitSubscript(name)
	ok := false
	if indexed {
		ok = sh.setElement(base, index, strconv.Itoa(n), false)
	} else {
		ok = sh.setString(name, strconv.Itoa(n))
	}
	if !ok {
		f.Close()
		return false
	}
	sh.setFD(n, f)
	return true
}

// duplicate is <&word and >&word.
func (sh *shell) duplicate(r *syntax.Redirect, n int, name string, was *[]saved) bool {
	word, ok := sh.redirWord(r.Word)
	if !ok {
		return false
	}
	if name != "" && word == "-" {
		m, err := strconv.Atoi(sh.get(name))
		if base, index, indexed := splitSubscript(name); indexed {
			s, _ := sh.element(base, index)
			m, err = strconv.Atoi(s)
		}
		if err != nil {
			sh.errorf("%s: Bad file descriptor", name)
			return false
		}
		sh.setFD(m, nil)
		return true
	}
	if word == "-" {
		return sh.put(n, nil, was)
	}
	move := len(word) > 1 && strings.HasSuffix(word, "-")
	from, err := strconv.Atoi(strings.TrimSuffix(word, "-"))
	if err != nil || from < 0 {
		if r.Op == syntax.DplOut && (r.N == nil || r.N.Value == "1") {
			f, ok := sh.openFor(word, syntax.RdrOut)
			if !ok {
				return false
			}
			sh.put(1, f, was)
			return sh.put(2, f.Dup(), was)
		}
		sh.errorf("%s: ambiguous redirect", sh.source(r.Word))
		return false
	}
	f := sh.fds[from]
	if f == nil {
		sh.errorf("%d: Bad file descriptor", from)
		return false
	}
	if from == n && name == "" {
		return true
	}
	if !sh.putAt(n, name, f.Dup(), was) {
		return false
	}
	if move {
		return sh.put(from, nil, was)
	}
	return true
}

// redirWord expands the word of a redirection, which is to be one.
func (sh *shell) redirWord(w *syntax.Word) (string, bool) {
	if sh.run.posix {
		return sh.str(w), true
	}
	out := sh.fields([]*syntax.Word{w})
	if len(out) != 1 {
		sh.errorf("%s: ambiguous redirect", sh.source(w))
		return "", false
	}
	return out[0], true
}

// hereDoc is the text of a here-document.
func (sh *shell) hereDoc(r *syntax.Redirect) string {
	if r.Hdoc == nil {
		return ""
	}
	if quotedWord(r.Word) {
		var b strings.Builder
		for _, p := range r.Hdoc.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			}
		}
		if r.Op == syntax.DashHdoc {
			return stripTabs(b.String())
		}
		return b.String()
	}
	w := r.Hdoc
	if r.Op == syntax.DashHdoc {
		w = withoutTabs(w)
	}
	return sh.document(w)
}

func quotedWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '\\') >= 0 {
				return true
			}
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
	}
	return false
}

func stripTabs(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

// withoutTabs takes the tabs off the beginning of lines that are in the text of
// the document itself.
func withoutTabs(w *syntax.Word) *syntax.Word {
	c := &syntax.Word{}
	atStart := true
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			c.Parts = append(c.Parts, p)
			atStart = false
			continue
		}
		s := lit.Value
		if !atStart {
			first, rest, more := strings.Cut(s, "\n")
			if more {
				s = first + "\n" + stripTabs(rest)
			}
		} else {
			s = stripTabs(s)
		}
		atStart = strings.HasSuffix(s, "\n")
		c.Parts = append(c.Parts, &syntax.Lit{Value: s})
	}
	return c
}

// openFor opens path as the operator wants it, and says what is wrong.
func (sh *shell) openFor(path string, op syntax.RedirOperator) (*stream.File, bool) {
	flag := 0
	switch op {
	case syntax.RdrIn:
		flag = syscall.O_RDONLY
	case syntax.RdrInOut:
		flag = syscall.O_RDWR | syscall.O_CREAT
	case syntax.AppOut, syntax.AppAll:
		flag = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
	default:
		flag = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
		if op != syntax.RdrClob && sh.on(optNoClobber) {
			if info, err := sh.ses.FS.Stat(join(sh.dir, path)); err == nil && info.Mode().IsRegular() {
				sh.errorf("%s: cannot overwrite existing file", path)
				return nil, false
			}
		}
	}
	f, err := sh.open(path, flag)
	if err != nil {
		sh.errorf("%s: %s", path, command.Reason(err))
		return nil, false
	}
	return f, true
}

func (sh *shell) openRead(path string) (*stream.File, bool) {
	return sh.openFor(path, syntax.RdrIn)
}

// open opens a path: a descriptor of this shell by its name below /dev, or a
// file of the session.
func (sh *shell) open(path string, flag int) (*stream.File, error) {
	if path == "" {
		return nil, syscall.ENOENT
	}
	full := join(sh.dir, path)
	if n := devFD(full); n >= 0 {
		f := sh.fds[n]
		if f == nil {
			return nil, syscall.ENOENT
		}
		if flag == syscall.O_RDONLY {
			return stream.Again(f), nil
		}
		return f.Dup(), nil
	}
	if strings.HasPrefix(full, "/dev/tcp/") || strings.HasPrefix(full, "/dev/udp/") {
		return nil, syscall.ENOENT
	}
	under, err := sh.ses.FS.OpenFile(full, flag, 0o666&^sh.mask())
	if err != nil {
		return nil, err
	}
	acc := flag & 3
	return stream.Of(under, acc != syscall.O_WRONLY, acc != syscall.O_RDONLY), nil
}
