// Package bounds keeps a process and what it starts in a control group (version 2)
// of its own, with limits on what all of them together take from the machine:
//
//	g, err := bounds.New(bounds.Limits{Pids: 100, Memory: 1 << 30})
//	err = g.Add(pid) // before that process starts others
//	... it has ended ...
//	met, err := g.Close()
//
// Where no control group can be made, the error says why.
package bounds

// Limits of a [Group]. Zero fields bound nothing.
type Limits struct {
	Pids   int   // processes and threads at a time
	Memory int64 // bytes of memory, with files in memory; no swap besides
	CPU    int   // thousandths of a processor
}
