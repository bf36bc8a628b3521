package shell

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/stream"
)

func builtinUmask(sh *shell, args []string) int {
	symbolic, print := false, false
	args = args[1:]
	for len(args) > 0 && (args[0] == "-S" || args[0] == "-p") {
		symbolic = symbolic || args[0] == "-S"
		print = print || args[0] == "-p"
		args = args[1:]
	}
	if len(args) == 0 {
		prefix := ""
		if print {
			prefix = map[bool]string{true: "umask -S ", false: "umask "}[symbolic]
		}
		if symbolic {
			sh.out(prefix + symbolicMode(^sh.umask&0o777) + "\n")
		} else {
			sh.outf("%s%04o\n", prefix, sh.umask)
		}
		return 0
	}
	a := args[0]
	if a != "" && a[0] >= '0' && a[0] <= '9' {
		n, err := strconv.ParseUint(a, 8, 32)
		if err != nil || n > 0o777 {
			sh.errorf("umask: %s: octal number out of range", a)
			return 1
		}
		sh.umask = uint32(n)
		return 0
	}
	mode, ok := changeMode(^sh.umask&0o777, a)
	if !ok {
		sh.errorf("umask: `%s': invalid symbolic mode operator", firstOr(a))
		return 1
	}
	sh.umask = ^mode & 0o777
	if symbolic {
		sh.out(symbolicMode(mode) + "\n")
	}
	return 0
}

func firstOr(s string) string {
	if s == "" {
		return s
	}
	return s[:1]
}

func symbolicMode(m uint32) string {
	var parts []string
	for i, who := range []string{"u", "g", "o"} {
		bits := m >> (6 - 3*i) & 7
		s := who + "="
		for j, c := range "rwx" {
			if bits&(4>>j) != 0 {
				s += string(c)
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ",")
}

func changeMode(mode uint32, text string) (uint32, bool) {
	for _, clause := range strings.Split(text, ",") {
		i := 0
		var who uint32
		for i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0 {
			who |= map[byte]uint32{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[clause[i]]
			i++
		}
		if who == 0 {
			who = 0o777
		}
		if i == len(clause) || strings.IndexByte("+-=", clause[i]) < 0 {
			return 0, false
		}
		for i < len(clause) {
			op := clause[i]
			i++
			var bits uint32
			for i < len(clause) && strings.IndexByte("+-=", clause[i]) < 0 {
				b, ok := map[byte]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111, 'X': 0o111}[clause[i]]
				if !ok {
					return 0, false
				}
				bits |= b
				i++
			}
			switch op {
			case '+':
				mode |= bits & who
			case '-':
				mode &^= bits & who
			default:
				mode = mode&^who | bits&who
			}
		}
	}
	return mode, true
}

func builtinUlimit(sh *shell, args []string) int {
	l := sh.ses.Budget.Limits
	rows := []struct {
		c    byte
		name string
		val  string
	}{
		{'R', "real-time non-blocking time  (microseconds, -R)", "unlimited"},
		{'c', "core file size              (blocks, -c)", "0"},
		{'d', "data seg size               (kbytes, -d)", itoa(l.Memory / 1024)},
		{'e', "scheduling priority                 (-e)", "0"},
		{'f', "file size                   (blocks, -f)", itoa(l.Written / 1024)},
		{'i', "pending signals                     (-i)", "64"},
		{'l', "max locked memory           (kbytes, -l)", "0"},
		{'m', "max memory size             (kbytes, -m)", itoa(l.Memory / 1024)},
		{'n', "open files                          (-n)", itoa(l.Files)},
		{'p', "pipe size                (512 bytes, -p)", "8"},
		{'q', "POSIX message queues         (bytes, -q)", "0"},
		{'r', "real-time priority                  (-r)", "0"},
		{'s', "stack size                  (kbytes, -s)", "8192"},
		{'t', "cpu time                   (seconds, -t)", "unlimited"},
		{'u', "max user processes                  (-u)", itoa(l.Jobs)},
		{'v', "virtual memory              (kbytes, -v)", itoa(l.Memory / 1024)},
		{'x', "file locks                          (-x)", "unlimited"},
	}
	which, value := byte('f'), ""
	for _, a := range args[1:] {
		if len(a) > 1 && a[0] == '-' {
			for _, c := range []byte(a[1:]) {
				switch c {
				case 'S', 'H':
				case 'a':
					for _, r := range rows {
						sh.outf("%-44s %s\n", r.name, r.val)
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
		if r.c != which {
			continue
		}
		if value != "" && value != r.val && value != "hard" && value != "soft" {
			if r.val == "unlimited" || value == "unlimited" || decimal(value) > decimal(r.val) {
				sh.errorf("ulimit: %s: cannot modify limit: Operation not permitted", strings.TrimSpace(r.name[:strings.Index(r.name, "  ")]))
				return 1
			}
			sh.errorf("ulimit: limits are set by --limit here")
			return 1
		}
		if value == "" {
			sh.out(r.val + "\n")
		}
		return 0
	}
	sh.errorf("ulimit: -%c: invalid option", which)
	return 2
}

func builtinTimes(sh *shell, _ []string) int {
	sh.out("0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n")
	return 0
}

func builtinCaller(sh *shell, args []string) int {
	n := len(sh.frames)
	if n == 0 {
		return 1
	}
	at := func(i int) (name, source string) {
		if i < 0 {
			source = sh.run.script
			if source == "" {
				source = "NULL"
			}
			return "main", source
		}
		return sh.frames[i].name, sh.frames[i].source
	}
	if len(args) == 1 {
		_, source := at(n - 2)
		sh.outf("%d %s\n", sh.frames[n-1].callLine, source)
		return 0
	}
	k, ok := integer(args[1])
	if !ok || k < 0 || k >= int64(n) {
		return 1
	}
	i := n - 1 - int(k)
	name, source := at(i - 1)
	sh.outf("%d %s %s\n", sh.frames[i].callLine, name, source)
	return 0
}

func builtinHelp(sh *shell, args []string) int {
	if len(args) == 1 {
		sh.out("GNU bash, version " + bashVersion + " (x86_64-pc-linux-gnu), in the hermetic tier\nThese shell commands are defined internally.\n\n " + strings.Join(builtinNames(), "\n ") + "\n")
		return 0
	}
	status := 0
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if builtin(a) == nil && !isKeyword(a) {
			sh.errorf("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", a, a, a)
			status = 1
			continue
		}
		sh.out(a + ": " + a + "\n    A builtin of the shell; see bash(1).\n")
	}
	return status
}

// timeClause is the keyword time. Commands have no processes to account, so
// user and sys are the shell's: none.
func (sh *shell) timeClause(c *syntax.TimeClause) {
	start := sh.ses.Now()
	if c.Stmt != nil {
		sh.stmt(c.Stmt)
	} else {
		sh.status = 0
	}
	took := sh.ses.Now().Sub(start)
	format := "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
	if c.PosixFormat {
		format = "real %2R\nuser %2U\nsys %2S"
	} else if v := sh.lookup("TIMEFORMAT"); v != nil && v.isSet {
		if format = v.str; format == "" {
			return
		}
	}
	sh.errText(timeText(format, took) + "\n")
}

func timeText(format string, took time.Duration) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		prec, long := 3, false
		if format[i] >= '0' && format[i] <= '9' && i+1 < len(format) {
			prec = min(int(format[i]-'0'), 3)
			i++
		}
		if format[i] == 'l' && i+1 < len(format) {
			long = true
			i++
		}
		d := took
		switch format[i] {
		case 'U', 'S':
			d = 0
		case 'P':
			b.WriteString("0.00")
			continue
		case 'R':
		default:
			b.WriteByte(format[i])
			continue
		}
		if long {
			fmt.Fprintf(&b, "%dm%.*fs", int(d.Minutes()), prec, d.Seconds()-60*float64(int(d.Minutes())))
		} else {
			fmt.Fprintf(&b, "%.*f", prec, d.Seconds())
		}
	}
	return b.String()
}

// coproc starts a command with a pipe to and from it, in NAME[0] and NAME[1].
func (sh *shell) coproc(c *syntax.CoprocClause) {
	name := "COPROC"
	if c.Name != nil {
		name = sh.str(c.Name)
	}
	outR, outW := stream.Pipe()
	inR, inW := stream.Pipe()
	sub := sh.cloneJob()
	sub.deeper()
	sub.setFD(0, inR)
	sub.setFD(1, outW)
	r, w := sh.highFD(63), 0
	if r < 0 {
		sh.tooManyFiles()
	}
	sh.setFD(r, outR)
	if w = sh.highFD(60); w < 0 {
		sh.tooManyFiles()
	}
	sh.setFD(w, inW)
	sh.setList(name, []string{strconv.Itoa(r), strconv.Itoa(w)})
	sh.setString(name+"_PID", strconv.Itoa(sub.proc.pid))
	sh.nextJob++
	j := newJob(sh.nextJob, sub.proc, sh.source(c))
	sh.ses.start(sh, sub, func() { sub.stmt(c.Stmt) }, func(status int) { j.status.Store(int32(status)) })
	sh.jobs = append(sh.jobs, j)
	sh.lastJob = j.pid
	sh.status = 0
}
