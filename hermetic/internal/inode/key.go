package inode

import "io/fs"

// Key identifies a file, whatever its name.
type Key struct{ dev, ino uint64 }

// KeyOf is the key of a file.
func KeyOf(fi fs.FileInfo) Key {
	n := Of(fi)
	return Key{n.Dev, n.Ino}
}
