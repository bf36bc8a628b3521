package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"egressd/gate"
	"egressd/proxy/ca"
)

// trust is the authority that signs for every policy, and the file of certificates
// that clients are to trust. It belongs to the goroutine that loads policies.
type trust struct {
	authority *ca.Authority
	path      string // "": no file
	written   []byte
}

// write puts the system's roots and the authority's certificates into the file, if
// that changes it. Readers see the old file or the new one, never a part.
func (t *trust) write() error {
	if t.path == "" {
		return nil
	}
	data := t.authority.Bundle(gate.SystemRoots())
	if t.written != nil && bytes.Equal(data, t.written) {
		return nil
	}
	if err := replaceFile(t.path, data); err != nil {
		return fmt.Errorf("--ca-bundle: %w", err)
	}
	t.written = data
	return nil
}

// replaceFile replaces a file that everybody may read, in one step.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return fmt.Errorf("a file beside %s: %w", path, pe.Err) // its own name means nothing to a reader
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // nobody has seen it
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
