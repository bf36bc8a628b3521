package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
)

// pipeEnd is the reading end of a pipe, for the next member of a pipeline.
type pipeEnd struct{ r *stream.File }

// newPipeEnd makes a pipe, with its writing end as the output of sub, and also
// as its error output if both is set.
func newPipeEnd(sub *state.Shell, both bool) *pipeEnd {
	r, w := stream.Pipe()
	sub.SetFD(1, w)
	if both {
		sub.SetFD(2, w.Dup())
	}
	return &pipeEnd{r}
}

// take gives the end to its new owner.
func (p *pipeEnd) take() *stream.File {
	r := p.r
	p.r = nil
	return r
}

// nullInput is an empty input.
func nullInput() *stream.File { return stream.Text("") }

// pipeline runs the members of a | b | c concurrently.
func pipeline(sh *state.Shell, members []*syntax.Stmt, both []bool) {
	status := make([]int, len(members))
	subs := make([]*state.Shell, 0, len(members))
	last := len(members) - 1
	var in *pipeEnd
	for i, m := range members[:last] {
		sub := member(sh)
		var next *pipeEnd
		if in != nil {
			sub.SetFD(0, in.take())
		}
		next = newPipeEnd(sub, both[i])
		subs = append(subs, sub)
		i, m := i, m
		in = next
		start(sh, sub, func() { memberStmt(sub, m) }, func(st int) { status[i] = st })
	}
	if sh.Options.Shopt["lastpipe"] {
		lastInShell(sh, members[last], in)
		status[last] = sh.Status
	} else {
		sub := member(sh)
		sub.SetFD(0, in.take())
		subs = append(subs, sub)
		start(sh, sub, func() { memberStmt(sub, members[last]) }, func(st int) { status[last] = st })
	}
	for _, sub := range subs {
		<-sub.Proc.Done
	}
	if sh.Ctx.Err() == nil {
		sh.CheckLimit()
	}
	sh.Check()
	sh.PipeStatus = status
	sh.Status = status[last]
	if sh.Options.On(options.PipeFail) {
		for _, st := range status {
			if st != 0 {
				sh.Status = st
			}
		}
	}
}

// member is the subshell of one command of a pipeline.
func member(sh *state.Shell) *state.Shell {
	sub := sh.Clone()
	sub.Deeper()
	return sub
}

// memberStmt runs a member. The failure of a simple command is reported by the
// pipeline to the ERR trap.
func memberStmt(sh *state.Shell, m *syntax.Stmt) {
	if _, ok := m.Cmd.(*syntax.CallExpr); ok {
		sh.NoErrExit++
	}
	stmt(sh, m)
}

// lastInShell runs the last member in the shell itself: shopt -s lastpipe.
func lastInShell(sh *state.Shell, m *syntax.Stmt, in *pipeEnd) {
	old := sh.FDs.Open[0]
	delete(sh.FDs.Open, 0)
	sh.FDs.Open[0] = in.take()
	defer func() { sh.SetFD(0, old) }()
	stmt(sh, m)
}
