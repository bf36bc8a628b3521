package diff

// Lines that the other side does not have are left out of the search, and lines
// that it has very often are, too, in the midst of such. This is GNU diff's
// reckoning, which its output depends on.
type verdict uint8

const (
	keep    verdict = iota
	discard         // the other side has none
	perhaps         // the other side has many
)

// judge says which lines of one side take part in the search; other counts the
// lines of the other side by class.
func judge(class []int, other map[int]int) []verdict {
	many := 5
	for n := len(class) / 64 >> 2; n > 0; n >>= 2 {
		many *= 2
	}
	v := make([]verdict, len(class))
	for i, c := range class {
		switch n := other[c]; {
		case n == 0:
			v[i] = discard
		case n > many:
			v[i] = perhaps
		}
	}
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case perhaps:
			v[i] = keep // not within a run that begins with a sure one
		case discard:
			i = judgeRun(v, i)
		}
	}
	return v
}

// judgeRun settles the run of discards that begins at i, and reports the last
// line that it looked at.
func judgeRun(v []verdict, i int) int {
	end, unsure := i, 0
	for end < len(v) && v[end] != keep {
		if v[end] == perhaps {
			unsure++
		}
		end++
	}
	for end > i && v[end-1] == perhaps {
		end--
		v[end] = keep
		unsure--
	}
	run := v[i:end]
	if unsure*4 > len(run) {
		for j := range run {
			if run[j] == perhaps {
				run[j] = keep
			}
		}
		return i
	}
	keepSubruns(run)
	keepNear(len(run), func(j int) *verdict { return &run[j] })
	keepNear(len(run), func(j int) *verdict { return &run[len(run)-1-j] })
	return end - 1
}

// keepSubruns keeps the unsure where many of them follow each other.
func keepSubruns(run []verdict) {
	least := 1
	for n := len(run) >> 2 >> 2; n > 0; n >>= 2 {
		least <<= 1
	}
	least++
	for j := 0; j < len(run); {
		if run[j] != perhaps {
			j++
			continue
		}
		k := j
		for k < len(run) && run[k] == perhaps {
			k++
		}
		if k-j >= least {
			clear(run[j:k])
		}
		j = k
	}
}

// keepNear keeps the unsure near an end, up to three sure ones in a row or the
// first sure one eight lines in.
func keepNear(n int, at func(j int) *verdict) {
	row := 0
	for j := 0; j < n && row < 3; j++ {
		switch p := at(j); {
		case j >= 8 && *p == discard:
			return
		case *p == discard:
			row++
		default:
			*p, row = keep, 0
		}
	}
}
