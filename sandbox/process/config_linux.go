package process

import "egressd/sandbox/process/control"

// config is what the init is told, and what only planning it needs.
type config struct {
	control.Config
	paths    []string // values of the environment that may name files, see named
	home     string   // the harness's HOME; "" none
	terminal string   // path of the terminal device among stdin, stdout, stderr; "" none
}
