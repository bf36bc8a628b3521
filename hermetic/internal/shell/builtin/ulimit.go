package builtin

import (
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/limits"
)

// runUlimit is the builtin ulimit: it shows the limits of the session.
func runUlimit(sh *state.Shell, args []string) int {
	l := sh.Session.Budget.Limits
	rows := resources(l)
	which, value := byte('f'), ""
	for _, a := range args[1:] {
		if len(a) > 1 && a[0] == '-' {
			for _, c := range []byte(a[1:]) {
				switch c {
				case 'S', 'H':
				case 'a':
					for _, r := range rows {
						sh.Outf("%-44s %s\n", r.name, r.val)
					}
					return 0
				default:
					which = c
				}
			}
			continue
		}
		value = a
	}
	for _, r := range rows {
		if r.letter != which {
			continue
		}
		if value != "" && value != r.val && value != "hard" && value != "soft" {
			if r.val == "unlimited" || value == "unlimited" || number.Leading(value) > number.Leading(r.val) {
				sh.Errorf("ulimit: %s: cannot modify limit: Operation not permitted", strings.TrimSpace(r.name[:strings.Index(r.name, "  ")]))
				return 1
			}
			sh.Errorf("ulimit: limits are set by --limit here")
			return 1
		}
		if value == "" {
			sh.Out(r.val + "\n")
		}
		return 0
	}
	sh.Errorf("ulimit: -%c: invalid option", which)
	return 2
}

// resource is a line of ulimit -a.
type resource struct {
	letter byte
	name   string
	val    string
}

// resources lists what ulimit shows.
func resources(l limits.Limits) []resource {
	return []resource{
		{'R', "real-time non-blocking time  (microseconds, -R)", "unlimited"},
		{'c', "core file size              (blocks, -c)", "0"},
		{'d', "data seg size               (kbytes, -d)", strconv.FormatInt(l.Memory/1024, 10)},
		{'e', "scheduling priority                 (-e)", "0"},
		{'f', "file size                   (blocks, -f)", strconv.FormatInt(l.Written/1024, 10)},
		{'i', "pending signals                     (-i)", "64"},
		{'l', "max locked memory           (kbytes, -l)", "0"},
		{'m', "max memory size             (kbytes, -m)", strconv.FormatInt(l.Memory/1024, 10)},
		{'n', "open files                          (-n)", strconv.FormatInt(l.Files, 10)},
		{'p', "pipe size                (512 bytes, -p)", "8"},
		{'q', "POSIX message queues         (bytes, -q)", "0"},
		{'r', "real-time priority                  (-r)", "0"},
		{'s', "stack size                  (kbytes, -s)", "8192"},
		{'t', "cpu time                   (seconds, -t)", "unlimited"},
		{'u', "max user processes                  (-u)", strconv.FormatInt(l.Jobs, 10)},
		{'v', "virtual memory              (kbytes, -v)", strconv.FormatInt(l.Memory/1024, 10)},
		{'x', "file locks                          (-x)", "unlimited"},
	}
}

// runTimes is the builtin times.
func runTimes(sh *state.Shell, _ []string) int {
	sh.Out("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
	return 0
}
