//go:build !unix

package vercel

import "context"

type input struct{}

func (*input) close() {}

// readInput reads nothing: this system cannot tell whether there is anything.
func (r *run) readInput(context.Context, bool) (*input, error) { return nil, nil }

func (r *run) sendInput(context.Context, *input) (string, error) { return "", nil }
