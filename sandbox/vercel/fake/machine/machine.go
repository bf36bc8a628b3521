package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"egressd/gate"
	"egressd/sandbox"
	"egressd/sandbox/process"
)

// Config is what a machine is made of.
type Config struct {
	Disk *Disk    // stays the caller's; no two machines may run on one
	Hide []string // directories of the host that are empty inside

	Mounts []Mount // volumes; a volume that is written to is one machine's at a time

	// DoorServer serves the doors; see process.Backend. Nil: nothing can be reached.
	DoorServer func(ctx context.Context, own []netip.AddrPort) (process.DoorServer, error)
	Log        *slog.Logger // nil discards

	Console *os.File // what the agent itself complains about; nil: nowhere
}

// Kind says what an Error is about.
type Kind string

// The kinds of errors.
const (
	NotFound      Kind = "not_found"      // no such file
	NoProgram     Kind = "no_program"     // nothing of that name in PATH
	NotExecutable Kind = "not_executable" // it is there, and cannot be executed
	BadDirectory  Kind = "bad_directory"  // the working directory cannot be entered
	BadFile       Kind = "bad_file"       // any other trouble with a file
	NoServer      Kind = "no_server"      // nothing listens at that port
	Stopped       Kind = "stopped"        // the machine is not running
)

// Error is what went wrong inside.
type Error struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

func (e *Error) Error() string { return e.Text }

// Machine runs until Stop, or until its context ends.
type Machine struct {
	c      *conn
	disk   *Disk
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing of it is left
	wg     sync.WaitGroup

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]*waiter // nil: the agent is gone
}

// waiter waits for the agent's answer to one request.
type waiter struct {
	answer chan answer
	exited chan Exit // a program's end; nil: no program
}

type answer struct {
	files []*os.File
	err   error
}

// readyLimit is how long a machine may take to start.
const readyLimit = 30 * time.Second

// Start boots a machine. It runs until ctx ends or Stop is called; the caller
// calls Stop.
func Start(ctx context.Context, cfg Config) (*Machine, error) {
	binds, err := cfg.Disk.mount(cfg.Mounts)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(cfg.Disk.binds(cfg.Hide), func(b process.Bind) bool {
		return slices.ContainsFunc(binds, func(m process.Bind) bool { return m.Target == b.Target })
	})
	binds = append(own, binds...)
	pair, err := socketPair()
	if err != nil {
		return nil, err
	}
	c, err := newConn(pair[0])
	if err != nil {
		_ = pair[1].Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &Machine{c: c, disk: cfg.Disk, cancel: cancel, ended: make(chan struct{}), waiting: map[uint64]*waiter{}}
	ready, failed := make(chan struct{}), make(chan error, 1)
	m.wg.Go(func() { m.run(ctx, cfg, binds, pair[1], failed) })
	m.wg.Go(func() { m.listen(ready) })
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-ready:
		return m, nil
	case <-m.ended:
		m.Stop()
		if err := <-failed; err != nil {
			return nil, fmt.Errorf("the machine did not start: %w", err)
		}
		return nil, errNoAgent
	case <-limit.C:
		m.Stop()
		return nil, fmt.Errorf("the machine was not ready within %v", readyLimit)
	}
}

// errNoAgent is a machine whose agent ended at once.
var errNoAgent = errors.New("the machine has no agent: a program that uses this package calls machine.Agent first thing in main, a test in TestMain")

// run runs the machine until it ends.
func (m *Machine) run(ctx context.Context, cfg Config, binds []process.Bind, agent *os.File, failed chan<- error) {
	defer close(m.ended)
	defer m.c.close()
	defer agent.Close()
	b := &process.Backend{
		Gate: gate.Config{Log: cfg.Log}, Binds: binds, ReadOnly: true, Nested: true, DoorServer: cfg.DoorServer,
	}
	spec := sandbox.Spec{
		Argv: append([]string{"/proc/self/exe"}, agentArgs...), Dir: "/", Env: []string{"PATH=" + defaultPath, "HOME=/", "GOMAXPROCS=2"},
		Stdin: agent, Grace: time.Millisecond, RunAs: cfg.Disk.user(),
	}
	spec.Stderr = cfg.Console
	_, err := b.Run(ctx, spec)
	failed <- err
}

// Stop ends everything inside and waits until it is gone. It may be called
// more than once.
func (m *Machine) Stop() {
	m.c.close() // the agent ends, and with it the machine
	m.cancel()
	m.wg.Wait()
}

// Ended is closed when the machine is gone.
func (m *Machine) Ended() <-chan struct{} { return m.ended }

// listen delivers what the agent says until it is gone.
func (m *Machine) listen(ready chan<- struct{}) {
	defer m.cancel()
	defer m.forget()
	for {
		var r reply
		files, err := m.c.receive(&r)
		if err != nil {
			return
		}
		if r.ID == 0 {
			closeAll(files)
			close(ready)
			continue
		}
		m.deliver(r, files)
	}
}

func (m *Machine) deliver(r reply, files []*os.File) {
	m.mu.Lock()
	w := m.waiting[r.ID]
	if w != nil && (w.exited == nil || r.Err != nil || r.Exited != nil) {
		delete(m.waiting, r.ID)
	}
	m.mu.Unlock()
	switch {
	case w == nil:
		closeAll(files)
	case r.Exited != nil:
		w.exited <- *r.Exited
	case r.Err != nil:
		closeAll(files)
		w.answer <- answer{err: r.Err}
	default:
		w.answer <- answer{files: files}
	}
}

// forget fails every waiting request: the agent is gone.
func (m *Machine) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.waiting {
		if w.exited != nil {
			w.exited <- Exit{Code: 128 + int(syscall.SIGKILL), Lost: true}
		}
		select {
		case w.answer <- answer{err: errStopped()}:
		default: // it was answered, and its program was still running
		}
	}
	m.waiting = nil
}

func errStopped() error { return &Error{Kind: Stopped, Text: "the machine has stopped"} }

// ask sends r and waits for the answer.
func (m *Machine) ask(ctx context.Context, r request, w *waiter, files ...*os.File) (uint64, []*os.File, error) {
	w.answer = make(chan answer, 1)
	m.mu.Lock()
	if m.waiting == nil {
		m.mu.Unlock()
		return 0, nil, errStopped()
	}
	m.next++
	r.ID = m.next
	m.waiting[r.ID] = w
	m.mu.Unlock()
	if err := m.c.send(r, files...); err != nil {
		m.mu.Lock()
		delete(m.waiting, r.ID)
		m.mu.Unlock()
		return 0, nil, errors.Join(errStopped(), err)
	}
	select {
	case a := <-w.answer:
		return r.ID, a.files, a.err
	case <-ctx.Done():
		go func() { // it comes, at the latest when the agent goes
			closeAll((<-w.answer).files)
		}()
		return 0, nil, ctx.Err()
	}
}

// Open opens a regular file inside for reading. The caller closes it. path is
// relative to dir.
func (m *Machine) Open(ctx context.Context, dir, path string) (*os.File, error) {
	_, files, err := m.ask(ctx, request{Op: opOpen, Dir: dir, Path: path}, new(waiter))
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		closeAll(files)
		return nil, &Error{Kind: BadFile, Text: "no file came"}
	}
	return files[0], nil
}

// Dial connects to a server inside that listens on its loopback.
func (m *Machine) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	_, files, err := m.ask(ctx, request{Op: opDial, Port: port}, new(waiter))
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	if len(files) != 1 {
		return nil, &Error{Kind: NoServer, Text: "no connection came"}
	}
	return net.FileConn(files[0])
}

// Mkdir makes a directory; with recursive those above it, too, and one that is
// already there is not an error.
func (m *Machine) Mkdir(ctx context.Context, dir, path string, recursive bool) error {
	_, files, err := m.ask(ctx, request{Op: opMkdir, Dir: dir, Path: path, Recursive: recursive}, new(waiter))
	closeAll(files)
	return err
}

// Extract unpacks the gzip tar archive that r holds into dir.
func (m *Machine) Extract(ctx context.Context, dir string, r io.Reader) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(in, r)
		copied <- errors.Join(err, in.Close())
	}()
	_, files, err := m.ask(ctx, request{Op: opExtract, Dir: dir}, new(waiter), out)
	closeAll(files)
	_ = out.Close() // so that the copying ends when there is no reader
	if cerr := <-copied; err == nil && cerr != nil && !errors.Is(cerr, syscall.EPIPE) {
		err = cerr
	}
	return err
}
