package tar

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/shell/pattern"
)

const tarSpec = `+A,catenate c,create d,diff r,append t,list u,update x,extract ,get ,delete f:,file: v,verbose z,gzip ,gunzip ,ungzip
	j,bzip2 J,xz Z,compress ,zstd a,auto-compress C:,directory: O,to-stdout k,keep-old-files ,skip-old-files ,overwrite
	,keep-newer-files U,unlink-first p,preserve-permissions ,same-permissions ,no-same-permissions o,no-same-owner ,same-owner
	,numeric-owner m,touch T:,files-from: X:,exclude-from: ,exclude: ,wildcards ,no-wildcards ,anchored ,no-anchored
	,wildcards-match-slash ,no-wildcards-match-slash ,strip-components: h,dereference P,absolute-names ,transform: ,xform: ,null
	,no-recursion ,recursion ,owner: ,group: ,mode: ,mtime: ,sort: H:,format: ,one-top-level:: S,sparse ,remove-files ,exclude-vcs
	l,one-file-system i,ignore-zeros ,ignore-failed-read ,warning: ,posix ,show-transformed-names ,no-auto-compress b:,blocking-factor:
	W,verify w,interactive g:,listed-incremental: I:,use-compress-program: ,totals n,seek ,force-local ,no-xattrs ,no-acls ,no-selinux
	,hard-dereference ,delay-directory-restore ,no-overwrite-dir ,old-archive ,portability ,full-time ,utc ,block-number`

// fatal ends tar with a message.
type fatal string

func (f fatal) Error() string { return string(f) }

// operand is a name on the command line, and where -C had led.
type operand struct{ dir, name string }

// archiver is one call of tar.
type archiver struct {
	*gnu.Work
	mode     byte // one of the letters crutxd
	file     string
	pack     byte // z, j or J; 0: none, or found out when reading
	auto     bool
	verbose  int
	operands []operand
	dir      string // where -C leads now

	toStdout, keep, skipOld, keepNewer, samePerm, touch bool
	absolute, follow, noRecursion, null, remove         bool
	wildcards, numeric, fullTime, noAutoPack            bool
	strip                                               int
	excludes                                            []*pattern.Pattern
	transforms                                          []*transform
	top                                                 string
	owner, group                                        string
	mtime                                               time.Time
	format                                              string

	told    map[string]bool // messages that come once
	failed  bool
	packed  bool // the archive that is read was
	width   int  // of the middle columns of -tv
	used    map[int]bool
	matches []*pattern.Pattern
}

func tarCommand(w *gnu.Work) {
	t := &archiver{Work: w, told: map[string]bool{}, used: map[int]bool{}, width: 19, format: "gnu"}
	if t.parse() {
		if err := t.run(); err != nil && w.Ctx.Err() == nil {
			t.die(err)
		}
	}
	if t.failed && w.Status == 0 {
		w.Status = 2
		w.Complain("Exiting with failure status due to previous errors")
	}
}

func (t *archiver) die(err error) {
	var f fatal
	if errors.As(err, &f) {
		if f != "" {
			t.Complain("%s", string(f))
		}
	} else {
		t.Complain("%s: %s", t.file, command.Reason(err))
	}
	t.Complain("Error is not recoverable: exiting now")
	t.Status = 2
}

// fault is a message after which the work goes on, and fails in the end.
func (t *archiver) fault(format string, args ...any) {
	t.Complain(format, args...)
	t.failed = true
}

// once is a message that is told the first time only.
func (t *archiver) once(message string) {
	if !t.told[message] {
		t.told[message] = true
		t.Complain("%s", message)
	}
}

// usage is a mistake on the command line.
func (t *archiver) usage(format string, args ...any) bool {
	t.Complain(format, args...)
	_, _ = io.WriteString(t.Stderr, "Try 'tar --help' or 'tar --usage' for more information.\n")
	t.Status = 2
	return false
}

// parse reads the command line; the order of -C and names counts.
func (t *archiver) parse() bool {
	rest := oldStyle(t.Args[1:])
	for len(rest) > 0 {
		c := *t.Call
		c.Args = append([]string{t.Args[0]}, rest...)
		w := *t.Work
		w.Call = &c
		var said strings.Builder
		c.Stderr = &said
		sets, names, ok := w.Options("[OPTION...] [FILE]...", tarSpec)
		if complaint, _, _ := strings.Cut(said.String(), "\n"); complaint != "" {
			t.usage("%s", strings.TrimPrefix(complaint, t.Args[0]+": "))
			t.Status = 64
		}
		if !ok {
			return false
		}
		for _, o := range sets {
			if !t.set(o) {
				return false
			}
		}
		if len(names) == 0 {
			break
		}
		if n := len(rest) - len(names); n > 0 && rest[n-1] == "--" {
			for _, name := range names {
				t.add(name)
			}
			break
		}
		t.add(names[0])
		rest = names[1:]
	}
	if t.mode == 0 {
		return t.usage("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
	}
	if t.file == "" {
		t.file = "-"
	}
	return true
}

func (t *archiver) add(name string) { t.operands = append(t.operands, operand{t.dir, name}) }

// oldStyle makes options of a first word of letters without a dash.
func oldStyle(args []string) []string {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return args
	}
	values := ""
	for _, f := range strings.Fields(tarSpec) {
		if len(f) > 1 && f[1] == ':' {
			values += f[:1]
		}
	}
	letters, rest := args[0], args[1:]
	var out []string
	for i := range len(letters) {
		out = append(out, "-"+letters[i:i+1])
		if strings.IndexByte(values, letters[i]) >= 0 && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	return append(out, rest...)
}

func (t *archiver) set(o command.Set) bool {
	modes := map[string]byte{"create": 'c', "append": 'r', "list": 't', "update": 'u', "extract": 'x', "get": 'x'}
	packs := map[string]byte{"gzip": 'z', "gunzip": 'z', "ungzip": 'z', "bzip2": 'j', "xz": 'J'}
	flags := map[string]*bool{
		"auto-compress": &t.auto, "to-stdout": &t.toStdout, "keep-old-files": &t.keep, "skip-old-files": &t.skipOld,
		"keep-newer-files": &t.keepNewer, "preserve-permissions": &t.samePerm, "same-permissions": &t.samePerm, "touch": &t.touch,
		"absolute-names": &t.absolute, "dereference": &t.follow, "no-recursion": &t.noRecursion, "null": &t.null,
		"remove-files": &t.remove, "wildcards": &t.wildcards, "numeric-owner": &t.numeric, "full-time": &t.fullTime,
		"no-auto-compress": &t.noAutoPack,
	}
	texts := map[string]*string{"file": &t.file, "owner": &t.owner, "group": &t.group}
	switch {
	case modes[o.Name] != 0 && t.mode != 0 && t.mode != modes[o.Name]:
		return t.usage("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
	case modes[o.Name] != 0:
		t.mode = modes[o.Name]
	case packs[o.Name] != 0:
		t.pack = packs[o.Name]
	case flags[o.Name] != nil:
		*flags[o.Name] = true
	case texts[o.Name] != nil:
		*texts[o.Name] = o.Value
	case o.Name == "verbose":
		t.verbose++
	default:
		return t.setOther(o)
	}
	return true
}

func (t *archiver) setOther(o command.Set) bool {
	switch o.Name {
	case "directory":
		t.dir = t.under(t.dir, o.Value)
	case "exclude":
		t.excludes = append(t.excludes, pattern.Compile(strings.TrimSuffix(o.Value, "/"), pattern.Options{}))
	case "exclude-vcs":
		for _, n := range []string{".git", ".gitignore", ".gitmodules", ".gitattributes", ".svn", ".hg", ".hgignore", ".hgtags", "CVS", ".bzr"} {
			t.excludes = append(t.excludes, pattern.Compile(pattern.Quote(n), pattern.Options{}))
		}
	case "files-from", "exclude-from":
		return t.listFrom(o)
	case "strip-components":
		n, err := strconv.Atoi(o.Value)
		if err != nil || n < 0 {
			return t.usage("%s: Invalid number of elements", o.Value)
		}
		t.strip = n
	case "transform", "xform":
		return t.setTransform(o.Value)
	case "one-top-level":
		if t.top = o.Value; !o.Given {
			t.top = "\x00"
		}
	case "mtime":
		at, err := date.Parse(o.Value, t.Now())
		if err != nil {
			return t.usage("Invalid mtime: %s", o.Value)
		}
		t.mtime = at
	case "format", "posix":
		t.format = map[bool]string{true: "posix", false: o.Value}[o.Name == "posix"]
	case "sort": // names are always in order here
	case "no-wildcards":
		t.wildcards = false
	// What has no meaning on this file system, or is always so.
	case "no-same-owner", "same-owner", "no-same-permissions", "overwrite", "unlink-first", "no-anchored", "wildcards-match-slash",
		"recursion", "sparse", "one-file-system", "ignore-failed-read", "warning", "blocking-factor", "seek", "force-local",
		"no-xattrs", "no-acls", "no-selinux", "hard-dereference", "delay-directory-restore", "no-overwrite-dir", "utc", "ignore-zeros":
	default:
		t.Refuse("--" + o.Name)
		return false
	}
	return true
}

func (t *archiver) under(dir, name string) string {
	if dir == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return dir + "/" + name
}

// listFrom reads names or patterns from a file.
func (t *archiver) listFrom(o command.Set) bool {
	r, err := t.Open(o.Value)
	var b []byte
	if err == nil {
		b, err = t.All(r)
		_ = r.Close()
	}
	if err != nil {
		t.die(fatal(o.Value + ": Cannot open: " + command.Reason(err)))
		return false
	}
	end := "\n"
	if t.null {
		end = "\x00"
	}
	for line := range strings.SplitSeq(string(b), end) {
		switch {
		case line == "":
		case o.Name == "exclude-from":
			t.excludes = append(t.excludes, pattern.Compile(line, pattern.Options{}))
		default:
			t.add(line)
		}
	}
	return true
}

// excluded reports whether a name, or a directory that it is in, matches an
// exclusion, from any component on.
func (t *archiver) excluded(name string) bool {
	name = strings.TrimSuffix(name, "/")
	for end := 1; end <= len(name); end++ {
		if end < len(name) && name[end] != '/' {
			continue
		}
		for at := 0; at >= 0 && at < end; {
			for _, p := range t.excludes {
				if p.Match(name[at:end]) {
					return true
				}
			}
			next := strings.IndexByte(name[at:end], '/')
			if next < 0 {
				break
			}
			at += next + 1
		}
	}
	return false
}

func (t *archiver) run() error {
	switch t.mode {
	case 'c':
		return t.create()
	case 'r', 'u':
		return t.append()
	}
	return t.read()
}
