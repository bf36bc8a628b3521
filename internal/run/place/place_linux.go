package place

import (
	"egressd/policy/files"
	"egressd/sandbox/process"
)

// machine is the place as the tier that holds the rules sees it.
func machine(r Run, dir string) files.Place { return process.FilesPlace(r.Argv, r.Env, dir) }
