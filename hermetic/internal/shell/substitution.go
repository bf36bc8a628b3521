package shell

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// captured keeps what a substitution prints, up to the limit of strings.
type captured struct {
	bytes.Buffer
	most   int64
	budget *limits.Budget
}

func (c *captured) Write(p []byte) (int, error) {
	if int64(c.Len()+len(p)) > c.most {
		return 0, c.budget.Exceed(&limits.Exceeded{Name: "string", Limit: c.most, What: "bytes are in one string"})
	}
	return c.Buffer.Write(p)
}

// cmdSubst is $(...): the output, without the newlines at its end.
func cmdSubst(sh *state.Shell, c *syntax.CmdSubst) string {
	if len(c.Stmts) == 0 {
		sh.SubstStatus = 0
		return ""
	}
	if text, ok := fileSubst(sh, c.Stmts); ok {
		return strings.TrimRight(text, "\n")
	}
	if c.TempFile || c.ReplyVar {
		sh.Discardf("%s: bad substitution", sh.Source(c))
	}
	out := captureOutput(sh, func(sub *state.Shell) {
		if !sh.Options.Shopt["inherit_errexit"] && !sh.Program.Posix {
			sub.Options.Flags &^= options.ErrExit
		}
		stmts(sub, c.Stmts)
	})
	return strings.TrimRight(out, "\n")
}

// captureOutput runs do in a subshell and returns what it prints. The exit
// status is kept for a command that has no words.
func captureOutput(sh *state.Shell, do func(sub *state.Shell)) string {
	buf := &captured{most: sh.Session.Budget.Limits.String, budget: sh.Session.Budget}
	sub := sh.Clone()
	sub.SetFD(1, stream.Writer(buf, &sync.Mutex{}, nil))
	sub.Deeper()
	sub.NoErrExit = 0
	sh.SubstStatus = subshell(sub, func() { do(sub) })
	sh.CheckLimit()
	sh.Check()
	sh.Status = sh.SubstStatus
	return withoutNULs(sh, buf.String(), "command substitution")
}

// withoutNULs removes NUL bytes, with bash's warning.
func withoutNULs(sh *state.Shell, s, where string) string {
	if strings.IndexByte(s, 0) >= 0 {
		sh.Errorf("warning: %s: ignored null byte in input", where)
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// fileSubst is $(<file).
func fileSubst(sh *state.Shell, stmts []*syntax.Stmt) (string, bool) {
	if len(stmts) != 1 {
		return "", false
	}
	st := stmts[0]
	if st.Cmd != nil || st.Negated || st.Background || len(st.Redirs) != 1 || st.Redirs[0].Op != syntax.RdrIn || st.Redirs[0].N != nil {
		return "", false
	}
	name, ok := redirect.Word(sh, st.Redirs[0].Word)
	if !ok {
		sh.SubstStatus = 1
		return "", true
	}
	f, ok := redirect.OpenRead(sh, name)
	if !ok {
		sh.SubstStatus = 1
		return "", true
	}
	defer f.Close()
	buf := &captured{most: sh.Session.Budget.Limits.String, budget: sh.Session.Budget}
	in := stream.Bound{Ctx: sh.Ctx, File: f}
	b := make([]byte, 32<<10)
	for {
		n, err := in.Read(b)
		if _, werr := buf.Write(b[:n]); werr != nil {
			panic(state.Ended{Status: 126})
		}
		if err != nil {
			break
		}
	}
	sh.SubstStatus = 0
	return withoutNULs(sh, buf.String(), "command substitution"), true
}

// procSubst starts <(...) or >(...) and returns the name of its end: a pipe in
// memory under a descriptor of this shell, until the command is done. There is
// no FIFO, and no name that another process could open.
func procSubst(sh *state.Shell, p *syntax.ProcSubst) string {
	r, w := stream.Pipe()
	mine, theirs, at := r, w, 1
	if p.Op == syntax.CmdOut {
		mine, theirs, at = w, r, 0
	}
	n := sh.HighFD(63)
	if n < 0 {
		mine.Close()
		theirs.Close()
		sh.TooManyFiles()
	}
	sub := sh.CloneJob()
	sub.SetFD(at, theirs)
	sub.Deeper()
	sub.NoErrExit = 0
	if len(p.Stmts) > 0 {
		sub.LineShift -= int(p.Stmts[0].Pos().Line()) - int(p.OpPos.Line())
	}
	sh.SetFD(n, mine)
	sh.FDs.Substituted = append(sh.FDs.Substituted, n)
	j := sh.Jobs.AddSubstitution(sub.Proc)
	start(sh, sub, func() { stmts(sub, p.Stmts) }, j.SetStatus)
	return "/dev/fd/" + strconv.Itoa(n)
}
