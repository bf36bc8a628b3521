//go:build !unix

package stage

import "os"

const openRead = os.O_RDONLY
