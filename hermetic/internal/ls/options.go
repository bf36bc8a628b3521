package ls

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

const lsSpec = "a,all A,almost-all ,author b,escape ,block-size: B,ignore-backups c C ,color:: d,directory D,dired f F ,classify:: ,file-type " +
	",format: ,full-time g ,group-directories-first G,no-group h,human-readable H,dereference-command-line " +
	",dereference-command-line-symlink-to-dir ,hide: ,hyperlink:: ,indicator-style: i,inode I,ignore: k,kibibytes l L,dereference m " +
	"n,numeric-uid-gid N,literal o p q,hide-control-chars Q,quote-name ,quoting-style: r,reverse R,recursive " +
	"s,size ,si ,show-control-chars S ,sort: ,time: ,time-style: t T,tabsize: u U v w,width: x X Z,context 1 ,zero"

// listing is what ls was asked.
type listing struct {
	*gnu.Work
	format      string // "single-column", "long", "vertical", "across", "commas"
	all, almost bool
	backups     bool
	hide        []string
	ignore      []string
	dirs        bool // -d
	follow      string
	recursive   bool
	reverse     bool
	sort        string
	sortGiven   bool
	timeGiven   bool
	time        string
	indicator   string
	owner       bool
	group       bool
	author      bool
	numeric     bool
	inodes      bool
	sizes       bool
	dirsFirst   bool
	units       inode.Units // of files
	blocks      inode.Units // of allocated space
	kib         bool
	timeStyle   string
	recent, old string // formats of times
	quoting     string
	control     string // "hide", "show"
	width, tab  int
	color       bool
	painted     bool
	end         string
	zone        *time.Location
	now         time.Time
}

func newListing(w *gnu.Work) *listing {
	l := &listing{
		Work: w, format: "single-column", sort: "name", time: "mtime", indicator: "none", owner: true, group: true, width: 80, tab: 8,
		quoting: "literal", end: "\n", recent: "%b %e %H:%M", old: "%b %e  %Y", blocks: inode.Units{Block: 1024},
		zone: date.Zone(w.Getenv("TZ")), now: w.Now(),
	}
	w.Usage = 2
	switch w.Args[0] {
	case "dir":
		l.format, l.quoting = "vertical", "escape"
	case "vdir":
		l.format, l.quoting = "long", "escape"
	}
	if n, err := strconv.Atoi(w.Getenv("COLUMNS")); err == nil && n > 0 {
		l.width = n
	}
	l.timeStyle = w.Getenv("TIME_STYLE")
	for _, name := range []string{"BLOCK_SIZE", "LS_BLOCK_SIZE"} {
		if u, ok := inode.ParseUnits(w.Getenv(name)); ok {
			l.units, l.blocks = u, u
		}
	}
	return l
}

// lsLetters are options that set one thing.
var lsLetters = map[string]func(*listing){
	"all":                      func(l *listing) { l.all = true },
	"almost-all":               func(l *listing) { l.all, l.almost = false, true },
	"author":                   func(l *listing) { l.author = true },
	"escape":                   func(l *listing) { l.quoting = "escape" },
	"ignore-backups":           func(l *listing) { l.backups = true },
	"c":                        func(l *listing) { l.time, l.timeGiven = "ctime", true },
	"u":                        func(l *listing) { l.time, l.timeGiven = "atime", true },
	"C":                        func(l *listing) { l.format = "vertical" },
	"x":                        func(l *listing) { l.format = "across" },
	"m":                        func(l *listing) { l.format = "commas" },
	"l":                        func(l *listing) { l.format = "long" },
	"directory":                func(l *listing) { l.dirs = true },
	"F":                        func(l *listing) { l.indicator = "classify" },
	"file-type":                func(l *listing) { l.indicator = "file-type" },
	"p":                        func(l *listing) { l.indicator = "slash" },
	"full-time":                func(l *listing) { l.format, l.timeStyle = "long", "full-iso" },
	"g":                        func(l *listing) { l.format, l.owner = "long", false },
	"o":                        func(l *listing) { l.format, l.group = "long", false },
	"group-directories-first":  func(l *listing) { l.dirsFirst = true },
	"no-group":                 func(l *listing) { l.group = false },
	"human-readable":           func(l *listing) { l.units = inode.Units{Human: true}; l.blocks = l.units },
	"si":                       func(l *listing) { l.units = inode.Units{Human: true, SI: true}; l.blocks = l.units },
	"dereference":              func(l *listing) { l.follow = "always" },
	"dereference-command-line": func(l *listing) { l.follow = "operands" },
	"dereference-command-line-symlink-to-dir": func(l *listing) { l.follow = "directories" },
	"inode":              func(l *listing) { l.inodes = true },
	"kibibytes":          func(l *listing) { l.kib = true },
	"numeric-uid-gid":    func(l *listing) { l.format, l.numeric = "long", true },
	"literal":            func(l *listing) { l.quoting = "literal" },
	"hide-control-chars": func(l *listing) { l.control = "hide" },
	"show-control-chars": func(l *listing) { l.control = "show" },
	"quote-name":         func(l *listing) { l.quoting = "c" },
	"reverse":            func(l *listing) { l.reverse = true },
	"recursive":          func(l *listing) { l.recursive = true },
	"size":               func(l *listing) { l.sizes = true },
	"S":                  func(l *listing) { l.sort, l.sortGiven = "size", true },
	"t":                  func(l *listing) { l.sort, l.sortGiven = "time", true },
	"U":                  func(l *listing) { l.sort, l.sortGiven = "none", true },
	"v":                  func(l *listing) { l.sort, l.sortGiven = "version", true },
	"X":                  func(l *listing) { l.sort, l.sortGiven = "extension", true },
	"f": func(l *listing) {
		l.all, l.sort, l.sortGiven, l.color = true, "none", true, false
		if l.format == "long" {
			l.format = "single-column"
		}
	},
	"zero": func(l *listing) {
		l.end, l.color, l.quoting, l.control = "\x00", false, "literal", "show"
		if l.format != "long" {
			l.format = "single-column"
		}
	},
	"1": func(l *listing) {
		if l.format != "long" {
			l.format = "single-column"
		}
	},
}

func (l *listing) option(s command.Set) bool {
	if f := lsLetters[s.Name]; f != nil {
		f(l)
		return true
	}
	switch s.Name {
	case "hide":
		l.hide = append(l.hide, s.Value)
	case "ignore":
		l.ignore = append(l.ignore, s.Value)
	case "block-size":
		u, ok := inode.ParseUnits(s.Value)
		if !ok {
			l.Die(2, "invalid --block-size argument %s", gnu.QuoteShell(s.Value))
			return false
		}
		l.units, l.blocks = u, u
	case "tabsize", "width":
		n, err := strconv.ParseUint(s.Value, 0, 31)
		if err != nil {
			l.Die(2, "invalid %s: %s", map[string]string{"tabsize": "tab size", "width": "line width"}[s.Name], gnu.Quote(s.Value))
			return false
		}
		if s.Name == "tabsize" {
			l.tab = int(n)
		} else {
			l.width = int(n)
		}
	case "dired", "context":
		l.Refuse("--" + s.Name)
		return false
	default:
		return l.word(s)
	}
	return true
}

// word reads the options whose value is one of a list of words.
func (l *listing) word(s command.Set) bool {
	ok := false
	choose := func(words ...string) string {
		var v string
		v, ok = gnu.OneOf(l.Work, "--"+s.Name, s.Value, words...)
		return v
	}
	switch s.Name {
	case "color", "hyperlink", "classify":
		v := "always"
		if ok = true; s.Given {
			v = choose("always,yes,force", "never,no,none", "auto,tty,if-tty")
		}
		on := v == "always"
		switch {
		case s.Name == "color":
			l.color = on
		case s.Name == "hyperlink" && on:
			l.Refuse("--hyperlink")
			return false
		case s.Name == "classify" && on:
			l.indicator = "classify"
		}
	case "format":
		l.format = choose("long,verbose", "commas", "across,horizontal", "vertical", "single-column")
	case "indicator-style":
		l.indicator = choose("none", "slash", "file-type", "classify")
	case "quoting-style":
		l.quoting = choose("literal", "shell", "shell-always", "shell-escape", "shell-escape-always", "c", "c-maybe", "escape", "locale", "clocale")
	case "sort":
		l.sort, l.sortGiven = choose("none", "time", "size", "extension", "version", "width"), true
	case "time":
		l.time, l.timeGiven = choose("atime,access,use", "ctime,status", "mtime,modification", "birth,creation"), true
	case "time-style":
		l.timeStyle, ok = s.Value, true
	}
	return ok
}

// style sets how times are written.
func (l *listing) style(s string) bool {
	s = strings.TrimPrefix(s, "posix-")
	if f, ok := strings.CutPrefix(s, "+"); ok {
		old, recent, two := strings.Cut(f, "\n")
		if l.old, l.recent = old, recent; !two {
			l.recent = old
		}
		return true
	}
	styles := map[string][2]string{
		"full-iso": {"%Y-%m-%d %H:%M:%S.%N %z", "%Y-%m-%d %H:%M:%S.%N %z"}, "long-iso": {"%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M"},
		"iso": {"%Y-%m-%d ", "%m-%d %H:%M"}, "locale": {"%b %e  %Y", "%b %e %H:%M"},
	}
	f, ok := styles[s]
	if !ok {
		_ = l.Out.Flush()
		l.Errorf("invalid argument %s for %s", gnu.Quote(s), gnu.Quote("time style"))
		_, _ = l.Stderr.Write([]byte("Valid arguments are:\n  - [posix-]full-iso\n  - [posix-]long-iso\n  - [posix-]iso\n  - [posix-]locale\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format\n" +
			"Try '" + l.Args[0] + " --help' for more information.\n"))
		l.Status = 2
		return false
	}
	l.old, l.recent = f[0], f[1]
	return true
}

func (l *listing) finish() bool {
	if l.timeStyle != "" && l.format == "long" && !l.style(l.timeStyle) {
		return false
	}
	if l.Getenv("LS_COLORS") == "" && l.Getenv("COLORTERM") == "" && (l.Getenv("TERM") == "" || l.Getenv("TERM") == "dumb") {
		l.color = false
	}
	if l.kib && l.blocks == (inode.Units{}) {
		l.blocks = inode.Units{Block: 1024}
	}
	if l.timeGiven && !l.sortGiven && l.format != "long" {
		l.sort = "time"
	}
	if l.follow == "" {
		if l.dirs || l.format == "long" || l.indicator == "classify" {
			l.follow = "never"
		} else {
			l.follow = "directories"
		}
	}
	return true
}

// hidden says whether a name is left out of a directory's list.
func (l *listing) hidden(name string) bool {
	if l.backups && strings.HasSuffix(name, "~") {
		return true
	}
	for _, p := range l.ignore {
		if gnu.Fnmatch(p, name, true) {
			return true
		}
	}
	if l.all || l.almost {
		return false
	}
	if strings.HasPrefix(name, ".") {
		return true
	}
	for _, p := range l.hide {
		if gnu.Fnmatch(p, name, true) {
			return true
		}
	}
	return false
}

var controls = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x1f\x7f]`) })
