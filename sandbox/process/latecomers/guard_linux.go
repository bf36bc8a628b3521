package latecomers

import (
	"errors"
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
	firstTime  = 64   // directories watched before the program starts; the rest follows at once
	maxEntries = 4096 // entries read of one directory
)

// Config is what a guard needs.
type Config struct {
	Gate *files.Gate
	Plan *places.Plan
	// Aside is a directory out of the program's reach for what is moved away, made
	// when it is needed; "": it is renamed where it is.
	Aside string
	// Refused is told of each thing that was moved away, by Run's goroutine.
	Refused func(Refusal)
	Log     *slog.Logger
}

// Refusal is something that was moved away.
type Refusal struct {
	Path     string         // where it was
	To       string         // where it is now; "" it could not be moved: Err says why
	Err      error          // nil: it is out of the way
	Decision files.Decision // what refused it
}

// Guard watches for one run. Only Close may be called while Run runs.
type Guard struct {
	Config
	in      *os.File // inotify
	started time.Time
	last    map[string]bool // last elements of protected names
	globs   bool            // some are patterns
	byWD    map[int]*watched
	byPath  map[string]*watched
	later   []string        // not watched yet
	repos   map[string]bool // git directories that were made during the run
	moved   int
	full    bool // no more directories can be watched, which was told
	ended   chan struct{}
}

// watched is a directory.
type watched struct {
	wd    int
	path  string
	depth int // below one that was there at the start
}

// Open begins to watch. Nothing that the program does after it is missed, but what
// it does in the last of more than 64 directories within a moment.
func Open(c Config) (*Guard, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	g := &Guard{
		Config: c, in: os.NewFile(uintptr(fd), "inotify"), started: time.Now(), last: map[string]bool{},
		byWD: map[int]*watched{}, byPath: map[string]*watched{}, repos: map[string]bool{}, ended: make(chan struct{}),
	}
	for _, a := range c.Gate.Anchors() {
		if a.Access < files.ReadWrite {
			base := filepath.Base(a.Path)
			g.last[base] = true
			g.globs = g.globs || strings.ContainsAny(base, `*?[\`)
		}
	}
	first := min(len(c.Plan.Watch), firstTime)
	for _, dir := range c.Plan.Watch[:first] {
		g.watch(dir, 0)
	}
	g.later = c.Plan.Watch[first:]
	return g, nil
}

// Run watches until Close.
func (g *Guard) Run() {
	defer close(g.ended)
	g.rest()
	buf := make([]byte, 64<<10)
	for {
		n, err := g.in.Read(buf)
		if err != nil {
			return // Close's deadline
		}
		g.events(buf[:n])
	}
}

// Close ends Run, judges what was made last, and stops watching. The program must
// have ended.
func (g *Guard) Close() {
	g.in.SetReadDeadline(time.Now()) //nolint:errcheck // inotify can be polled
	<-g.ended
	fd := int(g.in.Fd())
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		g.events(buf[:n])
	}
	for repo := range g.repos {
		g.scan(repo, 0)
	}
	g.in.Close()
}

// rest watches the directories that Open left, and looks at what came meanwhile.
func (g *Guard) rest() {
	for _, dir := range g.later {
		if g.watch(dir, 0) {
			g.look(dir, 0, true)
		}
	}
	g.later = nil
}

const watchMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_CLOSE_WRITE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// watch adds a directory.
func (g *Guard) watch(dir string, depth int) bool {
	if g.byPath[dir] != nil {
		return true
	}
	d, err := openDir(dir)
	if err != nil {
		return false // gone, or a link has taken its place
	}
	defer unix.Close(d)
	wd := -1
	mask := uint32(watchMask)
	if inGit(dir) {
		mask |= unix.IN_MODIFY // a file that is never closed is obeyed as well
	}
	if err = unix.ENOSPC; len(g.byWD) < maxWatches {
		wd, err = unix.InotifyAddWatch(int(g.in.Fd()), descriptor(d), mask)
	}
	if errors.Is(err, unix.ENOSPC) && !g.full {
		g.full = true
		g.Log.Warn("not every directory can be watched (at most 8192 in a run; fs.inotify.max_user_watches): "+
			"what the program makes under a protected name there stays", slog.String("first", dir))
	}
	if err != nil {
		return false
	}
	w := &watched{wd: wd, path: dir, depth: depth}
	g.byWD[wd], g.byPath[dir] = w, w
	return true
}

// forget drops a directory that was moved, and those in it: their paths are wrong.
func (g *Guard) forget(dir string) {
	for path, w := range g.byPath {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			unix.InotifyRmWatch(int(g.in.Fd()), uint32(w.wd)) //nolint:errcheck // it may be gone
			delete(g.byWD, w.wd)
			delete(g.byPath, path)
		}
	}
}

// openDir opens a directory to which no link leads.
func openDir(dir string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}
