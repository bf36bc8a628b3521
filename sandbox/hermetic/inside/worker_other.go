//go:build !linux

package inside

import "egressd/hermetic/command"

// Run reports a failure: workers exist on Linux only.
func Run(command.Table) int { return 125 }
