//go:build !linux

package pty

import (
	"errors"
	"os"
)

var errNone = errors.New("pseudo-terminals are made on Linux only")

// Open makes a pseudo-terminal: not here.
func Open() (master, slave *os.File, err error) { return nil, nil, errNone }

// Blocking makes f what programs expect: not here.
func Blocking(*os.File) error { return errNone }

// SetSize gives a terminal that size: not here.
func SetSize(*os.File, Size) error { return errNone }

// GetSize reports the size of a terminal: not here.
func GetSize(*os.File) (Size, error) { return Size{}, errNone }

// Raw lets every byte through a terminal as it is: not here.
func Raw(*os.File) error { return errNone }
