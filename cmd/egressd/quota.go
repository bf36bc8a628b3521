package main

import (
	"fmt"
	"strings"

	"egressd/internal/daemon"
	"egressd/internal/size"
)

// quota is the flag --events-quota.
type quota daemon.Quota

// String implements flag.Value.
func (q *quota) String() string { return "" }

// IsList implements listed.
func (q *quota) IsList() bool { return true }

// Set implements flag.Value. Values add up; those of the same name replace each
// other.
func (q *quota) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		into := map[string]*int64{"rate": &q.Rate, "burst": &q.Burst, "total": &q.Total}[name]
		if into == nil || !ok {
			return fmt.Errorf("%q: write rate=SIZE (bytes a second), burst=SIZE (at once) or total=SIZE (in one file)", part)
		}
		n, err := size.Parse(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*into = n
	}
	return nil
}
