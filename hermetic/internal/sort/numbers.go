package sort

import (
	"bytes"
	"cmp"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// plainNumber is the sign, the whole digits without zeros in front, and the
// fraction without zeros behind, of the number that b begins with; n is its
// length.
func plainNumber(b []byte) (negative bool, whole, fraction []byte, n int) {
	if len(b) > 0 && b[0] == '-' {
		negative, n = true, 1
	}
	from := n
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	whole = bytes.TrimLeft(b[from:n], "0")
	if n < len(b) && b[n] == '.' {
		n++
		from = n
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		fraction = bytes.TrimRight(b[from:n], "0")
	}
	if len(whole) == 0 && len(fraction) == 0 {
		negative = false
	}
	return negative, whole, fraction, n
}

func compareNumbers(a, b []byte) int {
	an, aw, af, _ := plainNumber(a)
	bn, bw, bf, _ := plainNumber(b)
	if an != bn {
		if an {
			return -1
		}
		return 1
	}
	d := cmp.Or(cmp.Compare(len(aw), len(bw)), bytes.Compare(aw, bw), bytes.Compare(af, bf))
	if an {
		return -d
	}
	return d
}

// humanOrder is the power that the suffix stands for, negative for a negative
// number.
func humanOrder(b []byte) int {
	negative, whole, fraction, n := plainNumber(b)
	if len(whole) == 0 && len(fraction) == 0 || n >= len(b) {
		return 0
	}
	order := strings.IndexByte("KMGTPEZY", b[n]) + 1
	if b[n] == 'k' {
		order = 1
	}
	if negative {
		return -order
	}
	return order
}

func compareHuman(a, b []byte) int {
	return cmp.Or(cmp.Compare(humanOrder(a), humanOrder(b)), compareNumbers(a, b))
}

// compareGeneral orders as -g: what is no number first, then NaN, then numbers.
func compareGeneral(a, b string) int {
	fa, na := gnu.ParseFloat(a)
	fb, nb := gnu.ParseFloat(b)
	class := func(f gnu.Float, n int) int {
		switch {
		case n == 0:
			return 0
		case f.NaN:
			return 1
		}
		return 2
	}
	ca, cb := class(fa, na), class(fb, nb)
	if ca != cb || ca < 2 {
		return cmp.Compare(ca, cb)
	}
	return fa.V.Cmp(fb.V)
}
