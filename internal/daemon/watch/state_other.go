//go:build !linux

package watch

import "io/fs"

// identify fills in which file it is. Here nothing portable says that: size and
// time must do.
func (s *state) identify(fs.FileInfo) (links uint64) { return 1 }
