//go:build !linux

package bounds

import "errors"

// Group is a control group, which this system has not.
type Group struct{}

// New fails: this system has no control groups.
func New(Limits) (*Group, error) { return nil, errors.New("this system has no control groups") }

// Add does nothing, as there is no Group.
func (*Group) Add(int) error { return nil }

// Dir is "".
func (*Group) Dir() string { return "" }

// Discard does nothing.
func (*Group) Discard() error { return nil }

// Close does nothing.
func (*Group) Close() ([]string, error) { return nil, nil }
