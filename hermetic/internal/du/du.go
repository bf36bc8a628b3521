package du

import (
	"fmt"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// usage is one call of du.
type usage struct {
	*gnu.Work
	all, apparent, total, separate, inodes, countLinks, oneFS bool

	summarize bool
	depth     int
	follow    string
	units     inode.Units
	end       string
	exclude   []string
	threshold int64
	stamp     string
	seen      map[inode.Key]bool
	device    uint64
}

func du(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... [FILE]...",
		"0,null a,all ,apparent-size B,block-size: b,bytes c,total D,dereference-args d,max-depth: ,files0-from: H h,human-readable ,inodes k L,dereference l,count-links m "+
			"P,no-dereference S,separate-dirs ,si s,summarize t,threshold: ,time:: ,time-style: X,exclude-from: ,exclude: x,one-file-system")
	if !ok {
		return
	}
	u := &usage{Work: w, depth: -1, units: inode.Units{Block: 1024}, end: "\n", seen: map[inode.Key]bool{}}
	if b, ok := inode.ParseUnits(w.Getenv("BLOCK_SIZE")); ok {
		u.units = b
	}
	for _, s := range sets {
		if !u.option(s) {
			return
		}
	}
	switch {
	case u.summarize && u.all:
		w.TryHelp("cannot both summarize and show all entries")
		return
	case u.summarize && u.depth > 0:
		w.TryHelp("warning: summarizing conflicts with --max-depth=%d", u.depth)
		return
	case u.summarize:
		u.depth = 0
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	var sum int64
	for _, n := range names {
		sum += u.operand(n)
	}
	if u.total {
		u.print(sum, "total")
	}
}

func (u *usage) option(s command.Set) bool {
	switch s.Name {
	case "null":
		u.end = "\x00"
	case "all":
		u.all = true
	case "apparent-size":
		u.apparent = true
	case "bytes":
		u.apparent, u.units = true, inode.Units{Block: 1}
	case "block-size":
		b, ok := inode.ParseUnits(s.Value)
		if !ok {
			u.Die(1, "invalid --block-size argument %s", gnu.QuoteShell(s.Value))
			return false
		}
		u.units = b
	case "total":
		u.total = true
	case "dereference-args", "H":
		u.follow = "operands"
	case "dereference":
		u.follow = "always"
	case "no-dereference":
		u.follow = "never"
	case "max-depth":
		n, err := strconv.Atoi(s.Value)
		if err != nil || n < 0 {
			u.TryHelp("invalid maximum depth %s", gnu.Quote(s.Value))
			return false
		}
		u.depth = n
	case "human-readable":
		u.units = inode.Units{Human: true}
	case "si":
		u.units = inode.Units{Human: true, SI: true}
	case "k":
		u.units = inode.Units{Block: 1024}
	case "m":
		u.units = inode.Units{Block: 1 << 20}
	case "inodes":
		u.inodes = true
	case "count-links":
		u.countLinks = true
	case "separate-dirs":
		u.separate = true
	case "summarize":
		u.summarize = true
	case "exclude":
		u.exclude = append(u.exclude, s.Value)
	case "one-file-system":
		u.oneFS = true
	case "time":
		u.stamp = "%Y-%m-%d %H:%M"
	case "threshold":
		neg := strings.HasPrefix(s.Value, "-")
		n, err := gnu.Size(strings.TrimPrefix(s.Value, "-"), "kKmMGTPEZY0")
		if err != nil || neg && n == 0 {
			u.Die(1, "invalid --threshold argument %s", gnu.Quote(s.Value))
			return false
		}
		if u.threshold = n; neg {
			u.threshold = -n
		}
	case "exclude-from":
		w := u.Work
		w.EachLine([]string{s.Value}, '\n', func(line []byte) bool {
			u.exclude = append(u.exclude, strings.TrimSuffix(string(line), "\n"))
			return true
		})
		return w.Status == 0
	default:
		u.Refuse("--" + s.Name)
		return false
	}
	return true
}

func (u *usage) operand(name string) int64 {
	fi, err := gnu.Lstat(u.Work, name)
	if err == nil {
		u.device = inode.Of(fi).Dev
	}
	return u.count(name, 0)
}

func (u *usage) excluded(name string) bool {
	for _, p := range u.exclude {
		if gnu.Fnmatch(p, name, false) || gnu.Fnmatch(p, gnu.Last(name), false) {
			return true
		}
	}
	return false
}

// count adds up a file and what is in it, printing on the way.
func (u *usage) count(name string, depth int) int64 {
	if u.Ctx.Err() != nil || u.excluded(name) {
		return 0
	}
	fi, err := gnu.Lstat(u.Work, name)
	if err == nil && (u.follow == "always" || u.follow == "operands" && depth == 0) {
		fi, err = gnu.Stat(u.Work, name)
	}
	if err != nil {
		u.Fault("cannot access %s: %s", gnu.QuoteShell(name), command.Reason(err))
		return 0
	}
	n := inode.Of(fi)
	if u.oneFS && n.Dev != u.device {
		return 0
	}
	if !u.countLinks && (n.Links > 1 || fi.IsDir()) && n.Ino != 0 {
		if u.seen[inode.KeyOf(fi)] {
			return 0
		}
		u.seen[inode.KeyOf(fi)] = true
	}
	own := n.Blocks * 512
	if u.apparent {
		own = n.Size
	}
	if u.inodes {
		own = 1
	}
	sum, sub := own, int64(0)
	if fi.IsDir() {
		list, err := u.FS.ReadDir(u.Path(name))
		if err != nil {
			u.Fault("cannot read directory %s: %s", gnu.QuoteShell(name), command.Reason(err))
		}
		for _, e := range list {
			if depth > gnu.MaxDepth {
				break
			}
			got := u.count(gnu.Join(name, e.Name()), depth+1)
			if e.IsDir() {
				sub += got
			} else {
				sum += got
			}
		}
	}
	shown := sum
	if !u.separate {
		shown += sub
	}
	if (fi.IsDir() || u.all || depth == 0) && (u.depth < 0 || depth <= u.depth) {
		if u.threshold == 0 || u.threshold > 0 && shown >= u.threshold || u.threshold < 0 && shown <= -u.threshold {
			if u.stamp != "" {
				name = date.Format(u.stamp, fi.ModTime().In(date.Zone(u.Getenv("TZ")))) + "\t" + name
			}
			u.print(shown, name)
		}
	}
	return sum + sub
}

func (u *usage) print(n int64, name string) {
	text := u.units.Format(n)
	if u.inodes {
		text = strconv.FormatInt(n, 10)
	}
	fmt.Fprintf(u.Out, "%s\t%s%s", text, name, u.end)
}
