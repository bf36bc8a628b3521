package latecomers

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
	"egressd/sandbox/process/places"
)

// Bounds of one guard.
const (
	maxWatches = 8192 // directories
	maxEntries = 4096 // entries read of one directory

	pollFor   = time.Second           // from the start on
	pollEvery = 20 * time.Millisecond // meanwhile
	pollSlow  = 200 * time.Millisecond
	tick      = 10 * time.Millisecond // file systems count times in ticks of up to this
)

// Config is what a guard needs.
type Config struct {
	Gate *files.Gate
	Plan *places.Plan
	// Aside is a directory out of the program's reach for what is moved away, made
	// when it is needed; "": it is renamed where it is.
	Aside string
	// Refused is told of each thing that was moved away, by one goroutine at a time.
	Refused func(Refusal)
	Log     *slog.Logger
}

// Refusal is something that was moved away.
type Refusal struct {
	Path     string         // where it was
	To       string         // where it is now
	Err      error          // why it could not be moved; nil: it was
	Decision files.Decision // what refused it
}

// Guard watches for one run. Only Close may be called while Run runs.
type Guard struct {
	Config
	started time.Time
	names   names
	byPath  map[string]*watched
	moved   int
	full    bool // no more directories can be watched, which was told

	in   *os.File // inotify; nil: directories are polled
	byWD map[int]*watched

	stop, ended chan struct{}
}

// names are the last elements of protected names.
type names struct {
	last  map[string]bool
	globs bool // some are patterns
}

// watched is a directory.
type watched struct {
	path  string
	depth int           // below one that was there at the start
	seen  unix.Timespec // its time when it was looked at
	wd    int           // -1: it is polled

	repository bool // it is laid out as a git directory, whatever it is called

	// hollow is what refuses this directory. It is empty, and so obeyed by nobody:
	// nested sandboxes make such ones to mount on. What comes into it takes it away.
	hollow *files.Decision
}

// New makes a guard for a program that has not started yet.
func New(c Config) *Guard {
	g := &Guard{
		Config: c, started: time.Now(), names: names{last: map[string]bool{}}, byPath: map[string]*watched{}, byWD: map[int]*watched{},
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	for i := range c.Gate.Anchors() {
		a := &c.Gate.Anchors()[i]
		if a.Access < files.ReadWrite {
			base := filepath.Base(a.Path)
			g.names.last[base] = true
			g.names.globs = g.names.globs || strings.ContainsAny(base, `*?[\`)
		}
	}
	for _, dir := range c.Plan.Watch {
		g.watch(dir, 0)
	}
	return g
}

// Run watches until Close.
func (g *Guard) Run() {
	defer close(g.ended)
	end := time.NewTimer(pollFor)
	defer end.Stop()
	every := time.NewTicker(pollEvery)
	defer every.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-every.C:
			g.poll(false)
		case <-end.C:
			if err := g.notify(); err != nil {
				g.Log.Warn("the kernel does not tell of new files, which are looked for 5 times a second: " + err.Error())
				every.Reset(pollSlow)
				continue
			}
			g.poll(true)
			g.serve()
			return
		}
	}
}

// Close ends Run and judges what was made last. The program must have ended.
func (g *Guard) Close() {
	close(g.stop)
	<-g.ended
	g.poll(true)
	if g.in != nil {
		g.in.Close()
	}
}

// poll looks into the directories that were changed since they were looked at; at
// last into all that were changed since the start.
func (g *Guard) poll(last bool) {
	now := time.Now()
	for path, w := range g.byPath {
		if w.wd >= 0 && !last {
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			g.forget(path)
			continue
		}
		changed := time.Unix(st.Mtim.Unix())
		if changed.Before(g.started.Add(-tick)) || !last && st.Mtim == w.seen && !inGit(path) && !w.repository { // there, a file is judged by what is in it
			continue
		}
		if now.Sub(changed) > 2*tick { // else it may change again without another time
			w.seen = st.Mtim
		}
		g.look(path, w.depth, true)
	}
}

const watchMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_CLOSE_WRITE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// notify lets the kernel tell of changes from now on.
func (g *Guard) notify() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	g.in = os.NewFile(uintptr(fd), "inotify")
	for _, w := range g.byPath {
		g.notice(w)
	}
	return nil
}

// serve handles what the kernel tells until Close.
func (g *Guard) serve() {
	go func() {
		<-g.stop
		g.in.SetReadDeadline(time.Now()) //nolint:errcheck // inotify can be polled
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := g.in.Read(buf)
		if err != nil {
			return
		}
		g.events(buf[:n])
	}
}

// watch adds a directory, and reports whether it is watched.
func (g *Guard) watch(dir string, depth int) bool {
	if g.byPath[dir] != nil {
		return true
	}
	if len(g.byPath) >= maxWatches {
		g.tooMany(dir)
		return false
	}
	w := &watched{path: dir, depth: depth, wd: -1}
	g.byPath[dir] = w
	if g.in != nil {
		g.notice(w)
	}
	return true
}

// notice asks the kernel to tell of w.
func (g *Guard) notice(w *watched) {
	d, err := openDir(w.path)
	if err != nil {
		return // gone, or a link has taken its place
	}
	defer unix.Close(d)
	mask := uint32(watchMask)
	if inGit(w.path) || w.repository {
		mask |= unix.IN_MODIFY // a file that is never closed is obeyed as well
	}
	wd, err := unix.InotifyAddWatch(int(g.in.Fd()), descriptor(d), mask)
	if err != nil {
		g.tooMany(w.path)
		return
	}
	w.wd = wd
	g.byWD[wd] = w
}

func (g *Guard) tooMany(dir string) {
	if !g.full {
		g.full = true
		g.Log.Warn("too many directories to watch them all (8192 in a run; fs.inotify.max_user_watches): what the program makes under "+
			"a protected name in the others stays until the end of the run, or for good", slog.String("first", dir))
	}
}

// forget drops a directory that was moved, and those in it: their paths are wrong.
func (g *Guard) forget(dir string) {
	for path, w := range g.byPath {
		if path != dir && !strings.HasPrefix(path, dir+"/") {
			continue
		}
		delete(g.byPath, path)
		if w.wd >= 0 {
			delete(g.byWD, w.wd)
			unix.InotifyRmWatch(int(g.in.Fd()), uint32(w.wd)) //nolint:errcheck // it may be gone
		}
	}
}

// openDir opens a directory to which no link leads.
func openDir(dir string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}
