// Package process runs a program in Linux namespaces whose only way out is a gate:
//
//	b := &process.Backend{Gate: gate.Config{Policy: policy, Resolver: resolver, Events: events}}
//	res, err := b.Run(ctx, sandbox.Spec{Argv: []string{"make"}, Env: env, Stdout: os.Stdout})
//
// The program's network namespace has no route. Rules that the program cannot
// change capture what it sends, and the doors that it is led to are served from
// outside.
//
// A run is three processes: the supervisor (this process, outside), the init (this
// program again, pid 1 inside, see package inside) and the program. The init sets
// the sandbox up, hands its listeners to the supervisor over a socketpair, gives
// every privilege up and starts the program.
package process

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"egressd/gate"
	"egressd/gate/handover"
	"egressd/sandbox/process/spawn"
)

// isolationNetns names this tier in events and errors.
const isolationNetns = "netns"

// Backend is the process tier. Set the fields before the first Run; the zero
// Backend runs programs that can reach nothing. Runs may be concurrent, but only
// one of them should own the terminal.
type Backend struct {
	// Gate is what judges and records the program's flows. Its Isolation and Own
	// are this tier's to set.
	Gate gate.Config

	// Nested lets the program make namespaces and mounts of its own, for programs
	// that put their tools into a sandbox again. Capture, masks and protected files
	// hold in there as well; what is given up is one layer in front of the kernel.
	Nested bool

	// Learn records every refused write. Without it those to files that would be new
	// or are emptied first are not told, because to ask about them makes a program
	// that writes many small files take half as long again.
	Learn bool

	Publish   []Publish  // servers inside that the host's loopback may reach
	HostPorts []HostPort // ports of the host's loopback that the inside may reach

	// Binds are files and directories of this machine that appear at other paths
	// inside.
	Binds []Bind
	// ReadOnly keeps the inside from changing anything of this machine's file system
	// but what Binds show. The private directories (/tmp, /run, ...) stay writable.
	ReadOnly bool

	// Outside is what holds beside Spec.Protect.
	Outside Outside

	// Limits bound what the run takes from the machine.
	Limits Limits

	// CaptureMode chooses how traffic is captured: "" is automatic, "nft" and
	// "anyip" are for tests.
	CaptureMode string

	// DoorServer makes the server of the doors when that is not this process but a
	// daemon, say. own are this process's listeners, which must not be dialled.
	// That server judges by a policy of its own; Gate.Policy and Gate.SecretValue
	// still say which ports are captured and which placeholders the program sees.
	// Nil: a gate of this process, made of Gate, serves them.
	DoorServer func(ctx context.Context, own []netip.AddrPort) (DoorServer, error)

	// Early is an init that was started before this Backend was made. The first
	// Run takes it, or discards it when it does not fit. Nil: Run starts one.
	Early *spawn.Pending

	hooks   testHooks
	current atomic.Pointer[running] // the run that started its program last; nil: none runs
}

// running is a run whose program has started.
type running struct {
	hold func(context.Context) (release func(), err error)
}

// Hold stops everything inside the run of b and keeps its output back, so that the
// caller has the terminal, which is reset, to itself. It returns once that is so, in
// seconds at most; the caller then calls release. After an error nothing has
// changed. If no program runs that is an error. One Hold at a time.
func (b *Backend) Hold(ctx context.Context) (release func(), err error) {
	r := b.current.Load()
	if r == nil {
		return nil, errors.New("no program is running")
	}
	return r.hold(ctx)
}

// Outside is about what is not the program's: what it does not see, and what
// happens when somebody else changes what protects it.
type Outside struct {
	// Hide are directories that are empty and read-only inside. They must exist.
	Hide []string
	// Aside is a directory for what the program makes under a protected name, made
	// when it is needed; it should be below one of Hide. "": what was made is renamed
	// where it is.
	Aside string

	// Overlay is a directory with an empty directory "changes" and an empty directory
	// "work", of the user that the program runs as, 0700 and on a disk with extended
	// attributes. What the program changes in its working directory ends up in
	// "changes", as overlayfs keeps it, and the working directory stays as it is. "":
	// the program changes it. The directory is hidden.
	Overlay string

	// KeepOn lets a run go on when a protected file was replaced on this machine, so
	// that the program can change what stands there now. Without it the run is ended,
	// with exit code 125 and an error.
	KeepOn bool
	// Replaced, unless nil, is told of each such file, and of one that stays out of the
	// program's reach although it was replaced.
	Replaced func(Replacement)
}

// ErrReplaced is why a run was ended before its program: a protected file was
// replaced on this machine.
var ErrReplaced = errors.New("was replaced on this machine during the run, which took its protection away: the program was ended")

// Replacement is a protected name that no longer leads to the file that it led to.
type Replacement struct {
	Path string
	// Exposed: the program could write there, as far as mounts are concerned, from the
	// replacement on.
	Exposed bool
	// Was and Now are the SHA-256 of the two files in hex. Of an ended run Now is read
	// when nothing of it is left. "": there is no regular file of at most 64 MB.
	Was, Now string
}

// DoorServer serves the doors of one run.
type DoorServer interface {
	// Bundle reports in PEM the certificates that programs inside must trust. Nil: no
	// TLS is opened.
	Bundle() []byte
	// Open serves the sockets until ctx ends and closes them; the caller keeps no
	// copy. It returns once they are served. wg counts what it started.
	Open(ctx context.Context, wg *sync.WaitGroup, s handover.Sockets) error
}

// Bind shows what is at Source outside at Target inside, and hides what is there
// otherwise. Nothing below Target is brought back because argv, the environment or
// Spec.Dir names it. The directories above Target need not exist.
type Bind struct {
	Source   string // a directory or a regular file, which must exist
	Target   string // an absolute path; not /, and nothing in /proc, /sys or /dev
	ReadOnly bool
}

// Publish makes a server inside reachable from the host's loopback.
type Publish struct {
	Host   netip.Addr // loopback address to listen on; zero: 127.0.0.1
	Port   uint16     // port on the host
	Inside uint16     // port inside; zero: Port
}

// HostPort lets the inside reach one port of the host's loopback, as
// host.internal. The policy must list it.
type HostPort struct {
	Port      uint16
	Localhost bool // also as localhost:Port inside
}

// Isolation reports "netns".
func (b *Backend) Isolation() string { return isolationNetns }

// testHooks leaves single layers out, so that a test can show what each of them
// stops. Only tests set it.
type testHooks struct {
	skip map[string]bool
	exe  string // what the init executes; "": this program

	noUserNS bool // as if the kernel refused user namespaces
}

func (h testHooks) skipped() []string { return slices.Sorted(maps.Keys(h.skip)) }

// plain reports whether nothing is hooked.
func (h testHooks) plain() bool {
	return len(h.skip) == 0 && h.exe == "" && !h.noUserNS
}
