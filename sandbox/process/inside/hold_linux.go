package inside

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"egressd/internal/linux/procstat"
	"egressd/sandbox/process/control"
)

// settleLimit is how long processes of one generation may take to stop. One that
// waits for a disk stops when that answers.
const settleLimit = 20 * time.Millisecond

// holding is the state of a HoldOrder. The zero value holds nothing.
type holding struct {
	mu     sync.Mutex
	on     bool
	before map[int]bool   // those that were stopped already, and stay so
	missed syscall.Signal // what stopped the program, unreported; 0: nothing
}

// hold stops every process inside, or lets go on what it has stopped.
//
// Threat: while a question is put to the person, a process inside writes to the
// terminal or reads the answer -> none runs. Nothing is left over.
//
// A parent that watches its children, such as a shell, must not see one stopped:
// parents stop first and go on last.
func (in *initProcess) hold(on bool, p *program) {
	h := &in.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	if on == h.on {
		return
	}
	h.on = on
	if on {
		all := processes()
		h.before, h.missed = make(map[int]bool), 0
		for pid, one := range all {
			if one.State == 'T' {
				h.before[pid] = true
			}
		}
		for _, pids := range generations(all) {
			stopAll(pids)
		}
		syscall.Kill(-1, syscall.SIGSTOP) //nolint:errcheck // there may be none; those that were started meanwhile
		return
	}
	gens := generations(processes())
	slices.Reverse(gens)
	for _, pids := range gens {
		for _, pid := range pids {
			if !h.before[pid] {
				syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it was killed meanwhile
			}
		}
	}
	if h.missed != 0 && h.before[p.pid] {
		in.ctl.Send(control.Message{Stopped: &control.StopReport{Sig: h.missed}}) //nolint:errcheck // gone
	}
}

// stopReport says what to report of a program that sig stopped; nil: nothing, it
// is stopped by hold.
func (in *initProcess) stopReport(pid int, sig syscall.Signal) *control.StopReport {
	h := &in.holding
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.on:
		h.missed = sig
		return nil
	case sig == syscall.SIGSTOP:
		if one, err := procstat.Read(pid); err == nil && one.State != 'T' {
			return nil // it was, and goes on by now
		}
	}
	return &control.StopReport{Sig: sig}
}

// stopAll stops processes, and waits until they are.
func stopAll(pids []int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGSTOP) //nolint:errcheck // it ended
	}
	late := time.Now().Add(settleLimit)
	for _, pid := range pids {
		for {
			one, err := procstat.Read(pid)
			if err != nil || one.State != 'R' && one.State != 'S' || time.Now().After(late) {
				break
			}
			syscall.Nanosleep(&syscall.Timespec{Nsec: int64(50 * time.Microsecond)}, nil) //nolint:errcheck // only a pause
		}
	}
}

// processes lists those inside but this one.
func processes() map[int]procstat.Process {
	all := make(map[int]procstat.Process)
	dir, err := os.Open("/proc")
	if err != nil {
		return all
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read counts
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 {
			continue
		}
		if one, err := procstat.Read(pid); err == nil {
			all[pid] = one
		}
	}
	return all
}

// generations orders processes: parents before their children.
func generations(all map[int]procstat.Process) [][]int {
	var gens [][]int
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		depth := 0
		for at := all[pid].Parent; at > 1 && depth < len(all); at = all[at].Parent {
			depth++
		}
		for len(gens) <= depth {
			gens = append(gens, nil)
		}
		gens[depth] = append(gens[depth], pid)
	}
	return gens
}
