// Package redirect makes and undoes redirections.
//
//	undo, ok := redirect.Apply(sh, st.Redirs)
//	defer undo()
//	if !ok { ... } // a message was written; the command is not run
//
// A file is opened in the session's vfs, never on the host. The names
// /dev/stdin, /dev/stdout, /dev/stderr and /dev/fd/N mean the descriptors of the
// shell; /dev/tcp and /dev/udp do not exist.
package redirect

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/internal/shell/vars"
)

// saved is a descriptor as it was before a redirection.
type saved struct {
	n    int
	file *stream.File // nil: closed
}

// Apply makes redirections in order, up to the first that fails; then ok is
// false and the command must not run. undo restores the descriptors, in both
// cases.
func Apply(sh *state.Shell, list []*syntax.Redirect) (undo func(), ok bool) {
	if len(list) == 0 {
		return func() {}, true
	}
	var was []saved
	undo = func() {
		for i := len(was) - 1; i >= 0; i-- {
			sh.SetFD(was[i].n, was[i].file)
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
		if !redirectOne(sh, r, &was) {
			return undo, false
		}
	}
	return undo, true
}

// Keep makes redirections that last, those of exec. It reports false after a
// message, with the descriptors restored.
func Keep(sh *state.Shell, list []*syntax.Redirect) bool {
	var was []saved
	ok := true
	for _, r := range list {
		if !redirectOne(sh, r, &was) {
			ok = false
			break
		}
	}
	if !ok {
		for i := len(was) - 1; i >= 0; i-- {
			sh.SetFD(was[i].n, was[i].file)
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

// put sets descriptor n to f (nil closes it), and saves what it was.
func put(sh *state.Shell, n int, f *stream.File, was *[]saved) bool {
	if f != nil && sh.FDs.Open[n] == nil && int64(len(sh.FDs.Open)) >= sh.Session.Budget.Limits.Files {
		f.Close()
		sh.TooManyFiles()
	}
	*was = append(*was, saved{n, sh.FDs.Open[n]})
	delete(sh.FDs.Open, n)
	if f != nil {
		sh.FDs.Open[n] = f
	}
	return true
}

// redirectOne makes one redirection.
func redirectOne(sh *state.Shell, r *syntax.Redirect, was *[]saved) bool {
	n, name, ok := redirTarget(sh, r)
	if !ok {
		return false
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return putAt(sh, n, name, stream.Text(hereDoc(sh, r)), was)
	case syntax.WordHdoc:
		s := expand.String(sh, r.Word) + "\n"
		sh.CheckLen(len(s))
		return putAt(sh, n, name, stream.Text(s), was)
	case syntax.DplIn, syntax.DplOut:
		return duplicate(sh, r, n, name, was)
	}
	path, ok := Word(sh, r.Word)
	if !ok {
		return false
	}
	switch r.Op {
	case syntax.RdrAll, syntax.AppAll:
		f, ok := openFor(sh, path, r.Op)
		if !ok {
			return false
		}
		put(sh, 1, f, was)
		return put(sh, 2, f.Dup(), was)
	}
	f, ok := openFor(sh, path, r.Op)
	if !ok {
		return false
	}
	return putAt(sh, n, name, f, was)
}

// redirTarget is the descriptor of a redirection, or the variable of {name}>.
func redirTarget(sh *state.Shell, r *syntax.Redirect) (n int, name string, ok bool) {
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
		sh.Errorf("%s: Bad file descriptor", r.N.Value)
		return 0, "", false
	}
	return n, "", true
}

// maxFD bounds the numbers of descriptors.
const maxFD = 1 << 16

// putAt is put at n. With a name, it uses a free descriptor instead, which
// stays open, and assigns its number to name.
func putAt(sh *state.Shell, n int, name string, f *stream.File, was *[]saved) bool {
	if name == "" {
		return put(sh, n, f, was)
	}
	for n = 10; sh.FDs.Open[n] != nil; n++ {
	}
	if int64(len(sh.FDs.Open)) >= sh.Session.Budget.Limits.Files {
		f.Close()
		sh.TooManyFiles()
	}
	base, index, indexed := vars.SplitSubscript(name)
	ok := false
	if indexed {
		ok = sh.Vars.SetElement(base, index, strconv.Itoa(n), false)
	} else {
		ok = sh.Vars.Set(name, strconv.Itoa(n))
	}
	if !ok {
		f.Close()
		return false
	}
	sh.SetFD(n, f)
	return true
}

// duplicate is <&word and >&word.
func duplicate(sh *state.Shell, r *syntax.Redirect, n int, name string, was *[]saved) bool {
	word, ok := Word(sh, r.Word)
	if !ok {
		return false
	}
	if name != "" && word == "-" {
		m, err := strconv.Atoi(sh.Vars.Get(name))
		if base, index, indexed := vars.SplitSubscript(name); indexed {
			s, _ := sh.Vars.Element(base, index)
			m, err = strconv.Atoi(s)
		}
		if err != nil {
			sh.Errorf("%s: Bad file descriptor", name)
			return false
		}
		sh.SetFD(m, nil)
		return true
	}
	if word == "-" {
		return put(sh, n, nil, was)
	}
	move := len(word) > 1 && strings.HasSuffix(word, "-")
	from, err := strconv.Atoi(strings.TrimSuffix(word, "-"))
	if err != nil || from < 0 {
		if r.Op == syntax.DplOut && (r.N == nil || r.N.Value == "1") {
			f, ok := openFor(sh, word, syntax.RdrOut)
			if !ok {
				return false
			}
			put(sh, 1, f, was)
			return put(sh, 2, f.Dup(), was)
		}
		sh.Errorf("%s: ambiguous redirect", sh.Source(r.Word))
		return false
	}
	f := sh.FDs.Open[from]
	if f == nil {
		sh.Errorf("%d: Bad file descriptor", from)
		return false
	}
	if from == n && name == "" {
		return true
	}
	if !putAt(sh, n, name, f.Dup(), was) {
		return false
	}
	if move {
		return put(sh, from, nil, was)
	}
	return true
}

// Word expands the word of a redirection, which must be one field.
func Word(sh *state.Shell, w *syntax.Word) (string, bool) {
	if sh.Program.Posix {
		return expand.String(sh, w), true
	}
	out := expand.Fields(sh, []*syntax.Word{w})
	if len(out) != 1 {
		sh.Errorf("%s: ambiguous redirect", sh.Source(w))
		return "", false
	}
	return out[0], true
}
