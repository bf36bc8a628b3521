package process

import "egressd/netns"

// stageName is argv[0] of the init, by which [Stage] knows it.
const stageName = "launch-init"

// config tells the init what to set up. It crosses the control socket, so
// neither the init's argv nor its environment holds anything.
type config struct {
	Argv  []string
	Paths []string // values of the environment that may name files, see named
	Path  string   // PATH
	Dir   string   // absolute
	Home  string   // the harness's HOME; "" none
	TmpDir,
	RuntimeDir string // TMPDIR and XDG_RUNTIME_DIR of the harness; "" none

	UID, GID int
	UserNS   bool // the init has a user namespace of its own

	Capture   netns.Capture
	Localhost []uint16 // ports to listen on at localhost inside

	Sockets []string // pathname unix sockets that exist on this host
	Protect []string // files nobody inside may change

	CA []byte // certificates in PEM for ca.pem; nil: no interception

	Terminal   string // path of the terminal device among stdin, stdout, stderr; "" none
	Foreground bool   // the harness gets the terminal
	Controls   bool   // the launcher has a controlling terminal

	Skip map[string]bool // walls left out; tests only
}
