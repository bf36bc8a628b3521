//go:build !linux || !(amd64 || arm64)

package seccomp

// Install reports ErrNotSupported: there is no filter for this platform.
func Install(Options) error { return ErrNotSupported }

// InstallDaemon reports ErrNotSupported.
func InstallDaemon() error { return ErrNotSupported }

// InstallWorker reports ErrNotSupported.
func InstallWorker(int) error { return ErrNotSupported }

// WorkerSupported reports ErrNotSupported.
func WorkerSupported() error { return ErrNotSupported }
