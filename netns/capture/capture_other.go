//go:build !linux

package capture

// Setup reports ErrNotSupported.
func Setup(Config) (*Doors, error) { return nil, ErrNotSupported }
