package proxy

import "sync"

// crowd is a set of client connections that is waited for. The zero crowd is
// shut: nobody gets in.
type crowd struct {
	mu    sync.Mutex
	open  bool
	in    map[*visit]struct{}
	empty chan struct{} // closed when the last one leaves; nil while nobody waits
}

// begin lets connections in.
func (c *crowd) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
	if c.in == nil {
		c.in = make(map[*visit]struct{})
	}
}

// enter adds v; false: the crowd is shut. Where true, leave must follow.
func (c *crowd) enter(v *visit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		c.in[v] = struct{}{}
	}
	return c.open
}

func (c *crowd) leave(v *visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.in, v)
	if len(c.in) == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.in)
}

func (c *crowd) all() []*visit {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*visit, 0, len(c.in))
	for v := range c.in {
		all = append(all, v)
	}
	return all
}

// gone reports a channel that is closed once nobody is in.
func (c *crowd) gone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.empty == nil {
		c.empty = make(chan struct{})
		if len(c.in) == 0 {
			closed := c.empty
			close(closed)
			c.empty = nil
			return closed
		}
	}
	return c.empty
}

// end shuts the crowd and closes every connection in it; why is told in the
// events. It does not wait.
func (c *crowd) end(why string) {
	c.mu.Lock()
	c.open = false
	c.mu.Unlock()
	for _, v := range c.all() {
		v.close(why)
	}
}
