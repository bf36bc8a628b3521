package gnu

import (
	"errors"
	"math"
	"math/big"
	"strings"
)

// ErrNumber and ErrOverflow are what Size finds wrong.
var (
	ErrNumber   = errors.New("invalid")
	ErrOverflow = errors.New("value too large for defined data type")
)

// Size reads a count with an optional multiplier out of suffixes, as in "10K":
// b is 512, kB 1000, K and KiB 1024, and so on to Y. A count too large for
// 64 bits is math.MaxInt64 with ErrOverflow.
func Size(s, suffixes string) (int64, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, suffix := s[:digits], s[digits:]
	if n == "" {
		if suffix == "" || !strings.Contains(suffixes, suffix[:1]) {
			return 0, ErrNumber
		}
		n = "1"
	}
	v, _ := new(big.Int).SetString(n, 10)
	factor, ok := multiplier(suffix, suffixes)
	if !ok {
		return 0, ErrNumber
	}
	v.Mul(v, factor)
	if !v.IsInt64() {
		return math.MaxInt64, ErrOverflow
	}
	return v.Int64(), nil
}

func multiplier(suffix, suffixes string) (*big.Int, bool) {
	if suffix == "" {
		return big.NewInt(1), true
	}
	if !strings.Contains(suffixes, suffix[:1]) {
		return nil, false
	}
	switch suffix {
	case "b":
		return big.NewInt(512), true
	case "c":
		return big.NewInt(1), true
	case "w":
		return big.NewInt(2), true
	}
	power := strings.IndexByte("KMGTPEZY", suffix[0]&^0x20)
	if power < 0 {
		return nil, false
	}
	base := int64(1024)
	switch suffix[1:] {
	case "", "iB":
	case "B":
		if strings.Contains(suffixes, "0") {
			base = 1000
		}
	case "D":
		base = 1000
	default:
		return nil, false
	}
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(power+1)), nil), true
}

// One is 1 if b, and 0 otherwise.
func One(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Flag is flag if on, and 0 otherwise.
func Flag(on bool, flag int) int {
	if on {
		return flag
	}
	return 0
}
