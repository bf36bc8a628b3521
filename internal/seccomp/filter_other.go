//go:build !linux || !(amd64 || arm64)

package seccomp

// Install reports ErrNotSupported: there is no filter for this platform.
func Install(Options) error { return ErrNotSupported }

// InstallDaemon reports ErrNotSupported.
func InstallDaemon() error { return ErrNotSupported }
