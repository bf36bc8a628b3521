package hermetic

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

func (b *Backend) skips(wall string) bool { return slices.Contains(b.hooks.skip, wall) }

// standardFiles reports spec's standard files, with /dev/null where there is
// none.
func standardFiles(spec sandbox.Spec) (files [3]*os.File, closeNull func(), err error) {
	var null *os.File
	files = [3]*os.File{spec.Stdin, spec.Stdout, spec.Stderr}
	for i, f := range files {
		if f != nil {
			continue
		}
		if null == nil {
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return files, nil, err
			}
		}
		files[i] = null
	}
	return files, func() {
		if null != nil {
			null.Close()
		}
	}, nil
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
