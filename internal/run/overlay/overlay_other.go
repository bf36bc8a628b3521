//go:build !linux

package overlay

import "errors"

var errLinux = errors.New("an overlay over a directory is for Linux")

// Store is not to be had here.
type Store struct{ Dir string }

// Make reports an error here.
func Make(string, string, int, int) (*Store, error) { return nil, errLinux }

// Open reports an error here.
func Open(string) (*Store, error) { return nil, errLinux }

// Changes reports an error here.
func (*Store) Changes(int) ([]Change, int, error) { return nil, 0, errLinux }

// Apply reports an error here.
func (*Store) Apply(Gate, bool) (Result, error) { return Result{}, errLinux }

// Keep reports an error here.
func (*Store) Keep() error { return errLinux }

// Remove reports an error here.
func (*Store) Remove() error { return errLinux }

// Workdir reports "" here.
func (*Store) Workdir() string { return "" }
