//go:build !unix

package vercel

import "context"

// stdin is not sent: this system cannot tell whether there is any.
func (r *run) stdin(context.Context) (string, error) { return "", nil }
