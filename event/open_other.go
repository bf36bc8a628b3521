//go:build !unix

package event

import (
	"errors"
	"os"
)

func openAppend(string) (*os.File, error) {
	return nil, errors.New("events file: not supported on this system")
}

func dupFD(int, string) (*os.File, error) {
	return nil, errors.New("events file: not supported on this system")
}
