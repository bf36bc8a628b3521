package process

import (
	"fmt"
	"strconv"
	"strings"

	"egressd/internal/size"
	"egressd/sandbox/process/control"
)

// Limits bound what one run may take from the machine. Zero fields are what their
// comments say.
//
// Threat: a program takes the machine down with processes, memory or files -> where
// the kernel lets this user make control groups, Pids, Memory and CPU bound all
// processes of the run together; Files and Disk bind each process. Left over, unless
// Memory is set: memory as such. Left over in any case: many files on the disk, each
// below Disk.
type Limits struct {
	Pids   int64 // processes and threads at a time, with those of pid 1; DefaultPids
	Memory int64 // bytes of memory, with the private directories; not bounded
	CPU    int64 // thousandths of a processor; not bounded
	Files  int64 // descriptors of each process; as this process
	Disk   int64 // bytes of each file that is written, and of the private directories together; no bound, and half of the machine's memory
}

// Keeps is how the limits of ordinary runs are kept on a machine.
type Keeps struct {
	Groups string // where control groups can be made, for pids, memory and cpu
	WhyNot error  // nil: they can
	Pids   bool   // the number of processes is bounded, if need be without a control group
}

// DefaultPids is the bound on processes and threads unless Limits say otherwise: 1024,
// or 32 a processor. A browser with a dozen tabs has about 600, a parallel build 20 to
// 30 a processor; a fork bomb takes all that it gets.
func DefaultPids() int64 { return int64(control.DefaultProcesses()) }

// field is one of Limits by its name.
type field struct {
	name  string
	value *int64
	least int64
	parse func(string) (int64, error)
}

func (l *Limits) fields() []field {
	return []field{
		{"pids", &l.Pids, 32, parseCount}, // pid 1 alone has about ten threads
		{"memory", &l.Memory, 32 << 20, size.Parse},
		{"cpu", &l.CPU, 10, parseCPU},
		{"files", &l.Files, 32, parseCount},
		{"disk", &l.Disk, 1 << 20, size.Parse},
	}
}

// Set sets limits from "NAME=N", or more of them with commas between. N is a number;
// for memory and disk with K, M or G for powers of 1024, for cpu with a decimal point.
// The error names what there is.
func (l *Limits) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		name, text, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q: write NAME=N; NAME is one of pids, memory, cpu, files, disk", part)
		}
		if err := l.setOne(name, text); err != nil {
			return err
		}
	}
	return nil
}

func (l *Limits) setOne(name, text string) error {
	for _, f := range l.fields() {
		if f.name != name {
			continue
		}
		n, err := f.parse(text)
		if err == nil && n < f.least {
			err = fmt.Errorf("%q is too little for a program to start: %s is the least", text, f.spell(f.least))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*f.value = n
		return nil
	}
	return fmt.Errorf("the process tier has no limit %q: pids, memory, cpu, files, disk (--tier hermetic has others)", name)
}

// String spells the limits that are set as Set reads them; "" if none is.
func (l Limits) String() string {
	var out []string
	for _, f := range l.fields() {
		if *f.value > 0 {
			out = append(out, f.name+"="+f.spell(*f.value))
		}
	}
	return strings.Join(out, ",")
}

func (f field) spell(n int64) string {
	if f.name == "cpu" {
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	}
	return strconv.FormatInt(n, 10)
}

// Met says for the person that the run met the limit of this name, and what to do.
func (l Limits) Met(name string) string {
	for _, f := range l.fields() {
		if f.name == name {
			return fmt.Sprintf("limit: the run met --limit %s=%s: %s; if the program is right, raise it", name, f.spell(*f.value), whatMet(name))
		}
	}
	return "limit: the run met " + name
}

func whatMet(name string) string {
	if name == "memory" {
		return "a process that needed more was killed"
	}
	return "a process or thread that was one too many was not started"
}

// InForce fills in the default of what is always bounded.
func (l Limits) InForce() Limits {
	if l.Pids == 0 {
		l.Pids = DefaultPids()
	}
	return l
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 22) // no kernel has more processes, or descriptors of one
	if err != nil {
		return 0, fmt.Errorf("%q is not a number up to %d", s, 1<<22-1)
	}
	return int64(n), nil // #nosec G115 -- 22 bits
}

// parseCPU reads processors, such as 2 or 0.5, in thousandths.
func parseCPU(s string) (int64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0 && n <= 8192) {
		return 0, fmt.Errorf("%q is not a number of processors, such as 2 or 0.5", s)
	}
	return int64(n * 1000), nil
}
