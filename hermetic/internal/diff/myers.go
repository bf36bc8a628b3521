package diff

import (
	"context"
	"math"

	"egressd/hermetic/limits"
)

// search finds a shortest edit script between x and y by E. Myers, "An O(ND)
// Difference Algorithm and Its Variations" (1986), from both ends towards the
// middle, and gives up on the shortest one as GNU diff does when it costs too
// much, so that the scripts are the same.
type search struct {
	ctx    context.Context
	budget *limits.Budget
	x, y   []int
	fd, bd []int // furthest x of a diagonal, forwards and backwards; see at
	zero   int   // index of diagonal 0
	dear   int   // after so many steps the best so far will do
	gone   func(side, i int)
	err    error
}

// newSearch prepares a search; gone is told of each line that only one side has.
func newSearch(x, y []int, gone func(side, i int)) *search {
	n := len(x) + len(y) + 3
	dear := 1
	for d := n; d != 0; d >>= 2 {
		dear <<= 1
	}
	return &search{x: x, y: y, fd: make([]int, n), bd: make([]int, n), zero: len(y) + 1, dear: max(4096, dear), gone: gone}
}

// box is a part of both sides: x0 <= x < x1, y0 <= y < y1.
type box struct {
	x0, x1, y0, y1 int
	minimal        bool // do not give up
}

// run reports every line that is not in both.
func (s *search) run(b box) {
	for s.err == nil {
		for b.x0 < b.x1 && b.y0 < b.y1 && s.x[b.x0] == s.y[b.y0] {
			b.x0++
			b.y0++
		}
		for b.x0 < b.x1 && b.y0 < b.y1 && s.x[b.x1-1] == s.y[b.y1-1] {
			b.x1--
			b.y1--
		}
		if b.x0 == b.x1 || b.y0 == b.y1 {
			for i := b.x0; i < b.x1; i++ {
				s.gone(0, i)
			}
			for i := b.y0; i < b.y1; i++ {
				s.gone(1, i)
			}
			return
		}
		m := s.middle(b)
		s.run(box{b.x0, m.x, b.y0, m.y, m.firstMinimal})
		b = box{m.x, b.x1, m.y, b.y1, m.secondMinimal}
	}
}

// point is where a script passes, and whether its halves need to be minimal.
type point struct {
	x, y                        int
	firstMinimal, secondMinimal bool
}

// frontier is how far both searches have come.
type frontier struct {
	box
	dmin, dmax             int // diagonals there are
	fmin, fmax, bmin, bmax int // diagonals that were reached
}

// middle finds a point on the way.
func (s *search) middle(b box) point {
	f := frontier{box: b, dmin: b.x0 - b.y1, dmax: b.x1 - b.y0}
	f.fmin, f.bmin = b.x0-b.y0, b.x1-b.y1
	f.fmax, f.bmax = f.fmin, f.bmin
	odd := (f.fmin-f.bmin)&1 != 0
	s.fd[s.zero+f.fmin], s.bd[s.zero+f.bmin] = b.x0, b.x1
	for cost := 1; ; cost++ {
		if cost%64 == 0 {
			s.err = s.ctx.Err()
			if err := s.budget.Steps(int64(f.fmax-f.fmin+f.bmax-f.bmin)*64/2/16 + 1); err != nil {
				s.err = err
			}
			if s.err != nil {
				return point{b.x0, b.y0, true, true}
			}
		}
		if p, ok := s.forward(&f, odd); ok {
			return p
		}
		if p, ok := s.backward(&f, odd); ok {
			return p
		}
		if !b.minimal && cost >= s.dear {
			return s.best(&f)
		}
	}
}

// forward makes one edit step from the start on each diagonal.
func (s *search) forward(f *frontier, odd bool) (point, bool) {
	fd, bd := s.fd, s.bd
	if f.fmin > f.dmin {
		f.fmin--
		fd[s.zero+f.fmin-1] = -1
	} else {
		f.fmin++
	}
	if f.fmax < f.dmax {
		f.fmax++
		fd[s.zero+f.fmax+1] = -1
	} else {
		f.fmax--
	}
	for d := f.fmax; d >= f.fmin; d -= 2 {
		x := max(fd[s.zero+d-1]+1, fd[s.zero+d+1])
		for y := x - d; x < f.x1 && y < f.y1 && s.x[x] == s.y[y]; y++ {
			x++
		}
		fd[s.zero+d] = x
		if odd && f.bmin <= d && d <= f.bmax && bd[s.zero+d] <= x {
			return point{x, x - d, true, true}, true
		}
	}
	return point{}, false
}

// backward makes one edit step from the end on each diagonal.
func (s *search) backward(f *frontier, odd bool) (point, bool) {
	fd, bd := s.fd, s.bd
	if f.bmin > f.dmin {
		f.bmin--
		bd[s.zero+f.bmin-1] = math.MaxInt
	} else {
		f.bmin++
	}
	if f.bmax < f.dmax {
		f.bmax++
		bd[s.zero+f.bmax+1] = math.MaxInt
	} else {
		f.bmax--
	}
	for d := f.bmax; d >= f.bmin; d -= 2 {
		x := min(bd[s.zero+d-1], bd[s.zero+d+1]-1)
		for y := x - d; x > f.x0 && y > f.y0 && s.x[x-1] == s.y[y-1]; y-- {
			x--
		}
		bd[s.zero+d] = x
		if !odd && f.fmin <= d && d <= f.fmax && x <= fd[s.zero+d] {
			return point{x, x - d, true, true}, true
		}
	}
	return point{}, false
}

// best is the furthest that either search has come.
func (s *search) best(f *frontier) point {
	fSum, fx := -1, 0
	for d := f.fmax; d >= f.fmin; d -= 2 {
		x := min(s.fd[s.zero+d], f.x1)
		y := x - d
		if y > f.y1 {
			x, y = f.y1+d, f.y1
		}
		if x+y > fSum {
			fSum, fx = x+y, x
		}
	}
	bSum, bx := math.MaxInt, 0
	for d := f.bmax; d >= f.bmin; d -= 2 {
		x := max(s.bd[s.zero+d], f.x0)
		y := x - d
		if y < f.y0 {
			x, y = f.y0+d, f.y0
		}
		if x+y < bSum {
			bSum, bx = x+y, x
		}
	}
	if f.x1+f.y1-bSum < fSum-(f.x0+f.y0) {
		return point{fx, fSum - fx, true, false}
	}
	return point{bx, bSum - bx, false, true}
}
