package learn

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"egressd/policy"
)

// WriteFile writes the policy to a new file, whole or not at all. A file that
// exists is never replaced: it may be in use, or the program inside may have
// put it there.
func (r *Recorder) WriteFile(name string) (err error) {
	text := r.Text()
	if _, err := policy.ParseFile(name, text); err != nil {
		return fmt.Errorf("learn: bug: the learned policy does not parse: %w", err)
	}
	tmp := name + "." + rand.Text()[:8]
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(tmp)) }()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Link(tmp, name) // unlike rename(2), fails when name exists
	}
	if err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	return nil
}
