package machine

import "syscall"

// onTerminal makes the standard input, a terminal, the program's controlling one.
func onTerminal(attr *syscall.SysProcAttr) { attr.Setctty, attr.Ctty = true, 0 }
