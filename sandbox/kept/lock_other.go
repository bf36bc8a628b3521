//go:build !unix

package kept

import (
	"errors"
	"os"
)

var errBusy = errors.New("in use")

func (s *Store) lock(string, bool) (*os.File, error) {
	return nil, errors.New("records need file locks, which this system has not")
}

func private(*os.Root) error {
	return errors.New("this system cannot tell whose a directory is")
}
