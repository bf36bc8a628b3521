//go:build !unix

package records

import (
	"errors"
	"os"
)

var errBusy = errors.New("in use")

func (s *Store) lock(string, bool) (*os.File, error) {
	return nil, errors.New("records need file locks, which this system does not have")
}

func private(*os.Root) error {
	return errors.New("the owner of a directory is not known on this system")
}
