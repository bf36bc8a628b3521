//go:build !linux

package main

import "errors"

// pin reports an error: the hermetic tier is for Linux.
func pin(int) error { return errors.New("the hermetic tier is for Linux") }
