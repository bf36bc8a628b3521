package process

import "egressd/netns"

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

	UserNS bool // the init has a user namespace of its own

	Capture   netns.Capture
	Localhost []uint16 // ports to listen on at localhost inside

	Plan    plan
	Protect []guarded // files nobody inside may change

	CA []byte // certificates in PEM for ca.pem; nil: no interception

	Terminal   string // path of the terminal device among stdin, stdout, stderr; "" none
	Foreground bool   // the harness gets the terminal
	Controls   bool   // the launcher has a controlling terminal

	Processes int // most processes and threads inside

	Skip map[string]bool // walls left out; tests only
}

// plan is what the supervisor finds out for the init about the host's file
// system, while the init starts.
type plan struct {
	Roots   []string // directories that become private
	Binds   []bind   // what is brought back, outermost first
	Masks   []string // sockets to hide
	Devices []device
	Resolv  string  // the file behind /etc/resolv.conf; "" none
	Hosts   *string // for /etc/hosts; nil: there is none
}
