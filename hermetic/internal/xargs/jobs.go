package xargs

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/env"
)

// crew runs the command lines of one xargs, several at once if asked.
type crew struct {
	x     *xargsCall
	slots chan int
	wg    sync.WaitGroup

	mu     sync.Mutex
	status int
	ended  bool
	out    io.Writer
	err    io.Writer
}

func newCrew(x *xargsCall) *crew {
	if x.jobs == 0 {
		x.jobs = xargsMaxJobs
	}
	n := max(1, min(x.jobs, xargsMaxJobs, int(x.Budget.Limits.Jobs)))
	k := &crew{x: x, slots: make(chan int, n), out: x.Stdout, err: x.Stderr}
	for i := range n {
		k.slots <- i
	}
	if n > 1 {
		k.out, k.err = &locked{w: x.Stdout, mu: &k.mu}, &locked{w: x.Stderr, mu: &k.mu}
	}
	return k
}

// locked lets several commands write to one stream.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (k *crew) start(args []string) {
	slot := <-k.slots
	if k.stopped() {
		k.slots <- slot
		return
	}
	if cap(k.slots) == 1 {
		k.run(args, slot)
		return
	}
	k.wg.Go(func() { k.run(args, slot) })
}

func (k *crew) run(args []string, slot int) {
	defer func() { k.slots <- slot }()
	in := io.Reader(strings.NewReader(""))
	if k.x.file != "-" {
		in = k.x.Stdin
	}
	c := k.x.Call.With(k.x.Args, in, k.out, k.err)
	if k.x.slot != "" {
		c.Env = env.WithVar(c.Env, k.x.slot, strconv.Itoa(slot))
	}
	k.note(env.Child(k.x.Ctx, c, args), args, c)
}

// note takes note of how one command ended.
func (k *crew) note(status int, args []string, c *command.Call) {
	k.mu.Lock()
	stop := k.ended
	switch {
	case status == 0:
	case status == 126 || status == 127 || status == 255:
		k.ended = true
		if !stop {
			k.status = status
			if status == 255 {
				k.status = 124
			}
		}
	case k.status == 0:
		k.status = 123
	}
	k.mu.Unlock()
	if status == 255 && !stop {
		c.Errorf("%s: exited with status 255; aborting", args[0])
	}
}

func (k *crew) stop() {
	k.mu.Lock()
	k.ended = true
	k.mu.Unlock()
}

func (k *crew) stopped() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

func (k *crew) wait() int {
	k.wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}
