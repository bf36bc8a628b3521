package inside

import (
	"errors"
	"io/fs"
	"os"

	"egressd/sandbox/process/control"
)

// maskSockets hides every planned socket and FIFO that can still be seen behind an
// empty file that no one may open: connecting to it, or opening it, is refused.
func (b *builder) maskSockets() error {
	if len(b.cfg.Plan.Masks) > control.MaxMasks {
		return errors.New("too many unix sockets outside /tmp and /run to hide them all")
	}
	var mask string
	for _, path := range b.cfg.Plan.Masks {
		if fi, err := os.Lstat(path); err != nil || fi.Mode().Type() != fs.ModeSocket && fi.Mode().Type() != fs.ModeNamedPipe {
			continue // behind a private root, or gone
		}
		if mask == "" {
			mask = "/dev/.masked"
			if err := os.WriteFile(mask, nil, 0o000); err != nil {
				return err
			}
		}
		if err := bindOver(mask, path, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if mask == "" {
		return nil
	}
	return os.Remove(mask)
}
