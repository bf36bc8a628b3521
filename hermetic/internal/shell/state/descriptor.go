package state

import (
	"egressd/hermetic/internal/shell/stream"
)

// SetFD sets descriptor n to f, which it owns from now on; nil closes n.
func (sh *Shell) SetFD(n int, f *stream.File) {
	if old := sh.FDs.Open[n]; old != nil {
		old.Close()
	}
	if f == nil {
		delete(sh.FDs.Open, n)
		return
	}
	sh.FDs.Open[n] = f
}

// Stream is descriptor n, whose reads and writes end with the shell's context.
func (sh *Shell) Stream(n int) stream.Bound { return stream.Bound{Ctx: sh.Ctx, File: sh.FDs.Open[n]} }

// HighFD is the highest free descriptor up to from, or the lowest above it; -1
// if there is none.
func (sh *Shell) HighFD(from int) int {
	if int64(len(sh.FDs.Open)) >= sh.Session.Budget.Limits.Files {
		return -1
	}
	for n := from; n > 9; n-- {
		if sh.FDs.Open[n] == nil {
			return n
		}
	}
	for n := from + 1; n < from+1024; n++ {
		if sh.FDs.Open[n] == nil {
			return n
		}
	}
	return -1
}

// DropSubstituted closes the ends of process substitutions made since
// len(FDs.Substituted) was mark.
func (sh *Shell) DropSubstituted(mark int) {
	for len(sh.FDs.Substituted) > mark {
		n := sh.FDs.Substituted[len(sh.FDs.Substituted)-1]
		sh.FDs.Substituted = sh.FDs.Substituted[:len(sh.FDs.Substituted)-1]
		sh.SetFD(n, nil)
	}
}
