//go:build !unix

package vercel

import "context"

// readFile reads nothing: this system cannot tell whether there is anything.
func (*run) readFile(context.Context) (*spool, error) { return nil, nil }

// startInput passes nothing on, for the same reason.
func (*run) startInput(context.Context, *spool) (*input, error) { return nil, nil }
