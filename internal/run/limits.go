package run

import (
	"strconv"
	"strings"

	"egressd/internal/run/microvm"
	"egressd/internal/run/script"
)

// limitsInForce spells the bounds of the run for its record: those of the process
// tier with their defaults, and those of the hermetic tier that were given. A run that
// nothing holds has none.
func (o *Options) limitsInForce() string {
	switch {
	case o.Tier == microvm.Tier || o.Isolation == isolationEnv:
		return ""
	case o.Tier != script.Tier:
		return o.Program.Limits.InForce().String()
	}
	var out []string
	for _, f := range o.Script.Limits.Fields() {
		if *f.Value > 0 {
			out = append(out, f.Name+"="+strconv.FormatInt(*f.Value, 10))
		}
	}
	return strings.Join(out, ",")
}
