//go:build !linux

package pod

// Install reports ErrNotSupported.
func (r Rules) Install() (Result, error) { return Result{}, ErrNotSupported }

// Verify reports ErrNotSupported.
func (r Rules) Verify() error { return ErrNotSupported }

// Remove reports ErrNotSupported.
func Remove() (bool, error) { return false, ErrNotSupported }

// Devices reports ErrNotSupported.
func Devices() ([]string, error) { return nil, ErrNotSupported }
