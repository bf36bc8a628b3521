package shell

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// capture keeps what a substitution prints, up to the limit of strings.
type capture struct {
	bytes.Buffer
	most   int64
	budget *limits.Budget
}

func (c *capture) Write(p []byte) (int, error) {
	if int64(c.Len()+len(p)) > c.most {
		return 0, c.budget.Exceed(&limits.Exceeded{Name: "string", Limit: c.most, What: "bytes are in one string"})
	}
	return c.Buffer.Write(p)
}

// cmdSubst is the output of $(...), without the newlines at its end.
func (sh *shell) cmdSubst(c *syntax.CmdSubst) string {
	if len(c.Stmts) == 0 {
		sh.substEnded = 0
		return ""
	}
	if text, ok := sh.fileSubst(c.Stmts); ok {
		return strings.TrimRight(text, "\n")
	}
	if c.TempFile || c.ReplyVar {
		sh.discardf("%s: bad substitution", sh.source(c))
	}
	out := sh.capture(func(sub *shell) {
		if !sh.shopts["inherit_errexit"] && !sh.run.posix {
			sub.opts &^= optErrExit
		}
		sub.stmts(c.Stmts)
	})
	return strings.TrimRight(out, "\n")
}

// capture runs do in a subshell and reports what it printed; its status is kept
// for a command without words.
func (sh *shell) capture(do func(sub *shell)) string {
	buf := &capture{most: sh.ses.Budget.Limits.String, budget: sh.ses.Budget}
	sub := sh.clone()
	sub.setFD(1, stream.Writer(buf, &sync.Mutex{}, nil))
	sub.deeper()
	sub.noErrExit = 0
	sh.substEnded = sub.subshell(func() { do(sub) })
	sh.checkLimit()
	sh.check()
	sh.status = sh.substEnded
	return sh.withoutNULs(buf.String(), "command substitution")
}

func (sh *shell) withoutNULs(s, where string) string {
	if strings.IndexByte(s, 0) >= 0 {
		sh.errorf("warning: %s: ignored null byte in input", where)
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// checkLimit ends the shell when a limit ended something of it.
func (sh *shell) checkLimit() {
	if sh.ses.Budget.Cause() != nil {
		panic(ended{126})
	}
}

// fileSubst is $(<file).
func (sh *shell) fileSubst(stmts []*syntax.Stmt) (string, bool) {
	if len(stmts) != 1 {
		return "", false
	}
	st := stmts[0]
	if st.Cmd != nil || st.Negated || st.Background || len(st.Redirs) != 1 || st.Redirs[0].Op != syntax.RdrIn || st.Redirs[0].N != nil {
		return "", false
	}
	name, ok := sh.redirWord(st.Redirs[0].Word)
	if !ok {
		sh.substEnded = 1
		return "", true
	}
	f, ok := sh.openRead(name)
	if !ok {
		sh.substEnded = 1
		return "", true
	}
	defer f.Close()
	buf := &capture{most: sh.ses.Budget.Limits.String, budget: sh.ses.Budget}
	in := stream.Bound{Ctx: sh.ctx, File: f}
	b := make([]byte, 32<<10)
	for {
		n, err := in.Read(b)
		if _, werr := buf.Write(b[:n]); werr != nil {
			panic(ended{126})
		}
		if err != nil {
			break
		}
	}
	sh.substEnded = 0
	return sh.withoutNULs(buf.String(), "command substitution"), true
}

// procSubst starts <(...) or >(...) and reports the name of its end: a pipe in
// memory under a descriptor of this shell, until the command is done. There is
// no FIFO and no name that another could open.
func (sh *shell) procSubst(p *syntax.ProcSubst) string {
	r, w := stream.Pipe()
	mine, theirs, at := r, w, 1
	if p.Op == syntax.CmdOut {
		mine, theirs, at = w, r, 0
	}
	n := sh.highFD(63)
	if n < 0 {
		mine.Close()
		theirs.Close()
		sh.tooManyFiles()
	}
	sub := sh.cloneJob()
	sub.setFD(at, theirs)
	sub.deeper()
	sub.noErrExit = 0
	if len(p.Stmts) > 0 {
		sub.lineShift -= int(p.Stmts[0].Pos().Line()) - int(p.OpPos.Line())
	}
	sh.setFD(n, mine)
	sh.procFDs = append(sh.procFDs, n)
	sh.lastJob = sub.proc.pid
	sh.ses.start(sh, sub, func() { sub.stmts(p.Stmts) }, nil)
	return "/dev/fd/" + strconv.Itoa(n)
}

// highFD is the highest free descriptor up to from; -1: none.
func (sh *shell) highFD(from int) int {
	if int64(len(sh.fds)) >= sh.ses.Budget.Limits.Files {
		return -1
	}
	for n := from; n > 9; n-- {
		if sh.fds[n] == nil {
			return n
		}
	}
	for n := from + 1; n < from+1024; n++ {
		if sh.fds[n] == nil {
			return n
		}
	}
	return -1
}

func (sh *shell) tooManyFiles() {
	l := sh.ses.Budget.Limits.Files
	sh.exceed(&limits.Exceeded{Name: "files", Limit: l, What: "files and descriptors were open at once"})
}

// dropProcFDs closes the ends of substitutions that were made since mark.
func (sh *shell) dropProcFDs(mark int) {
	for len(sh.procFDs) > mark {
		n := sh.procFDs[len(sh.procFDs)-1]
		sh.procFDs = sh.procFDs[:len(sh.procFDs)-1]
		sh.setFD(n, nil)
	}
}
