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

// bundle is the file of certificates that clients are to trust. Owned by whoever
// loads policies.
type bundle struct {
	path    string // "": none
	written []byte
}

// write puts the system's roots and a's certificates into the file, where that
// changes it. Readers see the old file or the new one, never a part.
func (b *bundle) write(a *ca.Authority) error {
	if b.path == "" {
		return nil
	}
	data := a.Bundle(gate.SystemRoots())
	if b.written != nil && bytes.Equal(data, b.written) {
		return nil
	}
	if err := replaceFile(b.path, data); err != nil {
		return fmt.Errorf("--ca-bundle: %w", err)
	}
	b.written = data
	return nil
}

// replaceFile writes a file that everybody may read, all at once.
func replaceFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return fmt.Errorf("a file beside %s: %w", path, pe.Err) // by its own name it says nothing
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // it was never seen
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
