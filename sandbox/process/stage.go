package process

// Stage runs the init of a sandbox when this process was started as one, and
// reports its exit code. The main function calls it with os.Args before it
// does anything else, and exits with code when isStage is true.
func Stage(args []string) (code int, isStage bool) {
	if len(args) == 0 || args[0] != stageName {
		return 0, false
	}
	return runInit(args[1:]), true
}

// stageName is argv[0] of the init, by which Stage knows it.
const stageName = "launch-init"
