//go:build !linux

package main

import "egressd/netns/pod"

// dropCapabilities: there are none to drop here, and nothing was captured.
func dropCapabilities() error { return pod.ErrNotSupported }
