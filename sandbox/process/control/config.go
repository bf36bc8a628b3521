package control

import "runtime"

// Config tells the init what to set up. It crosses the control socket, so
// neither the init's argv nor its environment holds anything.
type Config struct {
	Argv []string
	Path string // PATH
	Dir  string // absolute
	TmpDir,
	RuntimeDir string // TMPDIR and XDG_RUNTIME_DIR of the program; "" none

	Capture   Capture
	Localhost []uint16 // ports to listen on at localhost inside

	Plan    Plan
	Protect []Guarded // files that no program inside may change

	CA []byte // certificates in PEM for ca.pem; empty: no interception

	Foreground bool // the program holds its terminal from the start

	Limits Limits
	Nested bool // the program may make namespaces of its own
	Learn  bool // every refused write is told, which costs time

	Skip []string // layers left out; tests only
}

// Limits are what pid 1 bounds itself. Zero fields are defaults.
type Limits struct {
	Processes int // most processes and threads inside; DefaultProcesses
	Files     int // descriptors of each process; as the launcher
	Disk      int // bytes of each file, and of the private directories together; no bound, and half of the memory
}

// DefaultProcesses bounds processes and threads inside: more than a build or a browser
// needs, far fewer than a fork bomb.
func DefaultProcesses() int { return max(1024, 32*runtime.NumCPU()) }

// MaxMasks bounds how many sockets are masked. On a machine with more live sockets
// outside the private roots the run is refused.
const MaxMasks = 4096

// Capture is capture.Config in this package's own words: a supervisor fills it
// without importing what pid 1 does.
type Capture struct {
	Mode            string
	Ports, Reserved []uint16
}

// Plan is what the supervisor finds out about the host's file system for the
// init, while that starts.
type Plan struct {
	Roots  []string // directories that become private
	Binds  []Bind   // what is brought back, outermost first
	Shown  []Bind   // what the caller shows at another path, outermost first; see process.Bind
	Masks  []string // sockets to hide
	Hidden []string // directories that are empty inside
	Layer  Layer    // over the working directory
	Places []Place  // what can be written, and what is hidden, outermost first
	Own    string   // the directory for the run's own files
	Resolv string   // the file behind /etc/resolv.conf; "" none
	Hosts  *string  // for /etc/hosts; nil: there is none
}

// Layer is a directory that takes the changes to another one. The zero Layer is
// none.
type Layer struct {
	Over        string // the directory whose changes it takes
	Upper, Work string // on one file system
}

// Bind is something of the host that is mounted inside.
type Bind struct {
	Path     string // where it appears
	Source   string // what it is outside, links resolved
	Dir      bool
	ReadOnly bool
}

// Guarded is a file that no program inside may change.
type Guarded struct {
	File  string   // its real path
	Names []string // other paths that lead to it: links, and other mounts of its file system
}

// HandOver is what an init needs after it has executed itself again.
type HandOver struct {
	Config Config
	Env    []string
}

// Place is one mount by which the rules about files hold. A place lies in the
// places before it.
type Place struct {
	Path string // without links
	Kind PlaceKind
	Dir  bool
}

// PlaceKind says what is mounted on a place. The zero PlaceKind is Covered.
type PlaceKind byte

// The kinds. Unless a place says otherwise, the host's file system is read-only.
const (
	PlaceCovered  PlaceKind = iota // nothing: an empty directory or file that can be read
	PlaceWritable                  // what the host has there, to be written
	PlaceReadable                  // what the host has there, read-only, where what is around it is covered
	PlaceReadOnly                  // the same, where what is around it is writable
	PlacePinned                    // the same as without it, but nobody can rename or remove it
	PlacePrivate                   // an empty directory to be written, gone after the run
	PlaceLink                      // a symbolic link that nobody can replace
)
