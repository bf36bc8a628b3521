// Package cksum is the tools that compute checksums: cksum, md5sum and those of
// the sha family.
package cksum

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	t := command.Table{"cksum": gnu.Tool(cksum)}
	for name, a := range algorithms() {
		t[name] = gnu.Tool(func(w *gnu.Work) { digests(w, a) })
	}
	return t
}
