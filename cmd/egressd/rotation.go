package main

import (
	"fmt"
	"strconv"
	"strings"

	"egressd/internal/daemon"
	"egressd/internal/size"
)

// rotation is the flag --events-rotate.
type rotation daemon.Rotation

// Implementation constants of what keep may say.
const (
	defaultKeep = 10
	mostKept    = 100_000
	leastSize   = 1 << 20 // bytes: smaller files would be put away with every write
)

// String implements flag.Value.
func (r *rotation) String() string { return "" }

// Set implements flag.Value.
func (r *rotation) Set(s string) error {
	next := rotation{Keep: defaultKeep}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "size":
			n, err := size.Parse(value)
			if err != nil {
				return fmt.Errorf("size: %w", err)
			}
			if n < leastSize {
				return fmt.Errorf("size: %s is below 1M", value)
			}
			next.Size = n
		case "keep":
			n, err := strconv.Atoi(value)
			if value == "all" {
				n, err = -1, nil
			} else if err != nil || n < 1 || n > mostKept {
				return fmt.Errorf("keep: %q: write how many files stay, 1 to %d, or all", value, mostKept)
			}
			next.Keep = n
		default:
			return fmt.Errorf("%q: write size=SIZE, such as size=100M, and keep=N, files that stay", part)
		}
	}
	if next.Size == 0 {
		return fmt.Errorf("%q says no size: write size=SIZE, such as size=100M,keep=10", s)
	}
	*r = next
	return nil
}
