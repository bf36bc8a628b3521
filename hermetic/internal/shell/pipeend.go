package shell

import "egressd/hermetic/internal/shell/stream"

// pipeEnd is the reading end of a pipe on its way to the next member.
type pipeEnd struct{ r *stream.File }

// newPipeEnd gives sub the writing end of a new pipe as its output (and as its
// error, when both is set).
func newPipeEnd(sub *shell, both bool) *pipeEnd {
	r, w := stream.Pipe()
	sub.setFD(1, w)
	if both {
		sub.setFD(2, w.Dup())
	}
	return &pipeEnd{r}
}

func (p *pipeEnd) take() *stream.File {
	r := p.r
	p.r = nil
	return r
}

// nullInput is an input that is at its end.
func nullInput() *stream.File { return stream.Text("") }
