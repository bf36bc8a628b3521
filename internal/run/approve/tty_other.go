//go:build !linux

package approve

import "context"

// ask cannot ask on this system, so the answer is no.
func (t *Terminal) ask(context.Context, query) word { return no }
