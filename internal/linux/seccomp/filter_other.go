//go:build !linux || !(amd64 || arm64)

package seccomp

import "syscall"

// Install reports ErrNotSupported: there is no filter for this platform.
func Install(Options) error { return ErrNotSupported }

// InstallDaemon reports ErrNotSupported.
func InstallDaemon() error { return ErrNotSupported }

// InstallWorker reports ErrNotSupported.
func InstallWorker(int) error { return ErrNotSupported }

// WorkerSupported reports ErrNotSupported.
func WorkerSupported() error { return ErrNotSupported }

// Listener is never made here.
type Listener struct{}

// Listen reports ErrNotSupported.
func Listen(Calls) (*Listener, error) { return nil, ErrNotSupported }

// Receive reports ErrNotSupported.
func (*Listener) Receive() (Request, error) { return Request{}, ErrNotSupported }

// Valid reports false.
func (*Listener) Valid(uint64) bool { return false }

// Answer reports ErrNotSupported.
func (*Listener) Answer(uint64, syscall.Errno) error { return ErrNotSupported }

// Continue reports ErrNotSupported.
func (*Listener) Continue(uint64) error { return ErrNotSupported }
