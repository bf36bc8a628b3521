//go:build linux

package seccomp

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

// abiRule has nothing to add: arm64 has no second ABI under its own
// architecture, and 32-bit calls come under another one.
func abiRule() block { return nil }

func archRules() []rule { return nil }

func (Calls) archWriting(string) []rule { return nil }
