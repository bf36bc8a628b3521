package vars

// Random is bash's generator (Park and Miller), so that a seeded RANDOM gives
// bash's numbers.
type Random struct {
	state uint32
	last  uint32
}

// Seed is an assignment to RANDOM.
func (r *Random) Seed(n uint64) { r.state, r.last = uint32(n), 0 }

// Mix makes the numbers of a subshell differ from those of its parent.
func (r *Random) Mix(n int) { r.state ^= uint32(n) * 2654435761 }

func (r *Random) step() uint32 {
	s := int64(int32(r.state))
	if s == 0 {
		s = 123459876
	}
	h, l := s/127773, s%127773
	t := 16807*l - 2836*h
	if t < 0 {
		t += 0x7fffffff
	}
	r.state = uint32(t)
	return r.state
}

// Next15 is the next $RANDOM.
func (r *Random) Next15() uint32 {
	for {
		s := r.step()
		n := (s>>16 ^ s&0xffff) & 32767
		if n != r.last {
			r.last = n
			return n
		}
	}
}

// Next32 is the next $SRANDOM.
func (r *Random) Next32() uint32 { return r.step()<<1 ^ r.step()>>7 }
