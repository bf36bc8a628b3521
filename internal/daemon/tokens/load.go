package tokens

import (
	"fmt"
	"io/fs"
	"os"

	"egressd/internal/daemon/watch"
)

// Load reads and parses the file at path. It refuses a file that everybody may
// read, or that others than its owner may change. read gets its bytes; nil is
// watch.ReadFile, for half a file would take the other half's flows down. An
// error of the system is an *fs.PathError.
//
// Threat: an agent on the same machine reads a token and is judged by another
// policy -> the file's mode is looked at at every load. Left over: members of
// the file's group can read it, as operators need.
func Load(path string, read func(name string) ([]byte, error)) (*Set, error) {
	if read == nil {
		read = watch.ReadFile
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

func checkMode(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil // a pipe of the caller's own
	}
	perm := info.Mode().Perm()
	switch {
	case perm&0o004 != 0:
		return fmt.Errorf("%s has mode %#o: everybody can read the tokens: chmod 0640 %s (Kubernetes: defaultMode: 0440)", path, perm, path)
	case perm&0o022 != 0:
		return fmt.Errorf("%s has mode %#o: others can change the tokens: chmod 0640 %s", path, perm, path)
	}
	return nil
}
