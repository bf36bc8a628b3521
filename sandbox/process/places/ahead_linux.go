package places

import (
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Ahead reads directories before the search asks for them, while the init is still
// starting and other things are looked for. It decides nothing: the search goes its
// own way, within its own bounds, and takes from here what it would have read. A nil
// Ahead has read nothing.
type Ahead struct {
	mu    sync.Mutex
	ready *sync.Cond        // something was read, or all readers have ended
	read  map[string][]byte // by path, what lister.raw said; nil: it is being read, or waits for it
	queue []below           // what waits, nearest first
	busy  int               // readers in a directory
	stop  bool
	ended sync.WaitGroup
}

// below is a directory, and how many levels below it are searched.
type below struct {
	path  string
	depth int
}

// Readers are worth their start from so many directories on; two of them keep the
// processors of a small machine busy.
const (
	readersFrom = 8
	readers     = 2
)

// ReadAhead begins to read root and the directories below it that a search of it
// reads. The caller closes it. Nil: it is not worth it.
func ReadAhead(root string) *Ahead {
	a := &Ahead{read: map[string][]byte{}}
	a.ready = sync.NewCond(&a.mu)
	var l lister
	a.visit(&l, below{root, MaxDepth})
	if len(a.queue) < readersFrom {
		return nil
	}
	for range readers {
		a.ended.Go(a.serve)
	}
	return a
}

// Close ends the reading. It is called once nobody calls take any more.
func (a *Ahead) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.stop = true
	a.mu.Unlock()
	a.ready.Broadcast()
	a.ended.Wait()
}

// serve reads what waits until nothing can come any more.
func (a *Ahead) serve() {
	var l lister
	a.mu.Lock()
	defer a.mu.Unlock()
	for !a.stop {
		if len(a.queue) == 0 {
			if a.busy == 0 {
				break
			}
			a.ready.Wait()
			continue
		}
		d := a.queue[0]
		a.queue = a.queue[1:]
		a.busy++
		a.mu.Unlock()
		a.visit(&l, d)
		a.mu.Lock()
		a.busy--
	}
	a.ready.Broadcast()
}

// visit reads one directory and queues those in it.
func (a *Ahead) visit(l *lister, d below) {
	raw := l.raw(d.path)
	var in []below
	if d.depth > 0 {
		each(raw, func(name []byte, kind uint8) {
			if kind == unix.DT_DIR && !Skipped(string(name)) {
				in = append(in, below{filepath.Join(d.path, string(name)), d.depth - 1})
			}
		})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if raw == nil {
		delete(a.read, d.path)
	} else {
		a.read[d.path] = raw
	}
	for _, sub := range in {
		if len(a.read) >= MaxDirs {
			break
		}
		a.read[sub.path] = nil
		a.queue = append(a.queue, sub)
	}
	a.ready.Broadcast()
}

// take reports what was read of dir, and waits for it if it is on the way. Nil: the
// caller reads it.
func (a *Ahead) take(dir string) []byte {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		raw, known := a.read[dir]
		if !known || raw != nil || a.stop {
			return raw
		}
		a.ready.Wait()
	}
}
