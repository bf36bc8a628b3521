package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// findJob is the job that %1, %+, %text or a number means; nil: none.
func (sh *shell) findJob(spec string) *job {
	var live []*job
	for _, j := range sh.jobs {
		if !j.foreign {
			live = append(live, j)
		}
	}
	if text, ok := strings.CutPrefix(spec, "%"); ok {
		n, err := strconv.Atoi(text)
		switch {
		case err == nil:
			for i := len(live) - 1; i >= 0; i-- {
				if live[i].id == n {
					return live[i]
				}
			}
			return nil
		case text == "" || text == "+" || text == "%":
			if len(live) > 0 {
				return live[len(live)-1]
			}
			return nil
		case text == "-":
			if len(live) > 1 {
				return live[len(live)-2]
			}
			return nil
		}
		for i := len(live) - 1; i >= 0; i-- {
			if t, ok := strings.CutPrefix(text, "?"); ok && strings.Contains(live[i].text, t) || strings.HasPrefix(live[i].text, text) {
				return live[i]
			}
		}
		return nil
	}
	n, err := strconv.Atoi(spec)
	if err != nil {
		return nil
	}
	for _, j := range live {
		if j.pid == n {
			return j
		}
	}
	return nil
}

func builtinWait(sh *shell, args []string) int {
	any, place := false, ""
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'n':
				any = true
			case 'f':
			case 'p':
				if len(args) == 0 {
					sh.errorf("wait: -p: option requires an argument")
					return 2
				}
				place, args = args[0], args[1:]
			default:
				sh.errorf("wait: -%c: invalid option", a[i])
				sh.errText("wait: usage: wait [-fn] [-p var] [id ...]\n")
				return 2
			}
		}
	}
	if place != "" {
		sh.unset(place)
	}
	if any {
		return sh.waitAny(args, place)
	}
	if len(args) == 0 {
		for _, j := range slices.Clone(sh.jobs) {
			if j.foreign {
				continue
			}
			if status, interrupted := sh.waitFor(j); interrupted {
				return status
			}
		}
		sh.jobs = nil
		return 0
	}
	status := 0
	for _, a := range args {
		j := sh.findJob(a)
		if j == nil {
			if strings.HasPrefix(a, "%") {
				sh.errorf("wait: %s: no such job", a)
			} else if _, err := strconv.Atoi(a); err != nil {
				sh.errorf("wait: `%s': not a pid or valid job spec", a)
				status = 1
				continue
			} else {
				sh.errorf("wait: pid %s is not a child of this shell", a)
			}
			status = 127
			continue
		}
		var interrupted bool
		if status, interrupted = sh.waitFor(j); interrupted {
			return status
		}
		j.told = true
		if place != "" {
			sh.setString(place, strconv.Itoa(j.pid))
		}
	}
	return status
}

// waitAny is wait -n: the next job that ends.
func (sh *shell) waitAny(args []string, place string) int {
	var among []*job
	for _, j := range sh.jobs {
		if !j.foreign && !j.told && (len(args) == 0 || slices.ContainsFunc(args, func(a string) bool { return sh.findJob(a) == j })) {
			among = append(among, j)
		}
	}
	if len(among) == 0 {
		return 127
	}
	done := make(chan *job, len(among))
	stop := make(chan struct{})
	defer close(stop)
	for _, j := range among {
		if !j.running() {
			done <- j
			break
		}
	}
	if len(done) == 0 {
		for _, j := range among {
			sh.ses.busy.Add(1)
			go sh.ses.report(j, done, stop)
		}
	}
	select {
	case j := <-done:
		j.told = true
		if place != "" {
			sh.setString(place, strconv.Itoa(j.pid))
		}
		return int(j.status.Load())
	case sig := <-sh.proc.pending:
		sh.note(sig)
		sh.runPending()
		return 128 + signalNumber(sig)
	case <-sh.ctx.Done():
		sh.check()
	}
	return 127
}

func (s *session) report(j *job, done chan<- *job, stop <-chan struct{}) {
	defer s.busy.Done()
	select {
	case <-j.proc.done:
		done <- j
	case <-stop:
	}
}

func builtinJobs(sh *shell, args []string) int {
	pids, long, running := false, false, false
	var specs []string
	for _, a := range args[1:] {
		switch {
		case a == "-p":
			pids = true
		case a == "-l":
			long = true
		case a == "-r":
			running = true
		case a == "-s", a == "-n":
			return 0
		case strings.HasPrefix(a, "-"):
			sh.errorf("jobs: %s: invalid option", a)
			sh.errText("jobs: usage: jobs [-lnprs] [jobspec ...] or jobs -x command [args]\n")
			return 2
		default:
			specs = append(specs, a)
		}
	}
	status := 0
	list := sh.jobs
	if len(specs) > 0 {
		list = nil
		for _, s := range specs {
			j := sh.findJob(s)
			if j == nil {
				sh.errorf("jobs: %s: no such job", s)
				status = 1
				continue
			}
			list = append(list, j)
		}
	}
	last := len(list) - 1
	for i, j := range list {
		if running && !j.running() || j.told && !j.running() {
			continue
		}
		if pids {
			sh.outf("%d\n", j.pid)
			continue
		}
		mark := " "
		switch i {
		case last:
			mark = "+"
		case last - 1:
			mark = "-"
		}
		state, tail := "Running", " &"
		if !j.running() {
			j.told = true
			tail = ""
			if state = "Done"; j.status.Load() != 0 {
				state = fmt.Sprintf("Exit %d", j.status.Load())
			}
		}
		pid := ""
		if long {
			pid = strconv.Itoa(j.pid) + " "
		}
		sh.outf("[%d]%s  %s%-24s%s%s\n", j.id, mark, pid, state, j.text, tail)
	}
	return status
}

func builtinFg(sh *shell, args []string) int {
	spec := "%+"
	if len(args) > 1 {
		spec = args[1]
	}
	if !sh.on(optMonitor) {
		sh.errorf("%s: no job control", args[0])
		return 1
	}
	j := sh.findJob(spec)
	if j == nil {
		sh.errorf("%s: %s: no such job", args[0], strings.Replace(spec, "%+", "current", 1))
		return 1
	}
	if args[0] == "bg" {
		return 0
	}
	sh.out(j.text + "\n")
	status, _ := sh.waitFor(j)
	return status
}

func builtinDisown(sh *shell, args []string) int {
	if len(args) == 1 {
		args = append(args, "%+")
	}
	for _, a := range args[1:] {
		switch a {
		case "-a", "-r":
			sh.jobs = nil
			return 0
		case "-h":
			continue
		}
		j := sh.findJob(a)
		if j == nil {
			sh.errorf("disown: %s: no such job", strings.Replace(a, "%+", "current", 1))
			return 1
		}
		sh.jobs = slices.DeleteFunc(slices.Clone(sh.jobs), func(k *job) bool { return k == j })
	}
	return 0
}
