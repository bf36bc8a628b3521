package inside

import "golang.org/x/sys/unix"

// renameCall is the number of rename, which newer architectures lack.
const renameCall = unix.SYS_RENAME
