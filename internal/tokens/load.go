package tokens

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Load reads and parses the file at path. It refuses a file that everybody may
// read, or that others than its owner may change.
//
// Threat: an agent on the same machine reads a token and is judged by another
// policy. The mode is asked of the file that is then read, not of the path.
// Left over: members of the file's group can read it, as operators need.
func Load(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
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
