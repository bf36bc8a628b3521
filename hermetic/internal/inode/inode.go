// Package inode is what stat(2) tells of a file of the session, and how GNU
// programs write it.
package inode

import (
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"time"
)

// The session's only user, and its only group.
const (
	ID   = 1000
	User = "user"
)

// Inode is what stat(2) reports; times that are not known are that of the last
// change.
type Inode struct {
	Dev, Ino, Links, Rdev uint64
	UID, GID              uint32
	Size, Block, Blocks   int64 // Blocks of 512 bytes
	Atime, Mtime, Ctime   time.Time
}

// Of reports what fi holds.
func Of(fi fs.FileInfo) Inode {
	i := Inode{
		Links: 1, UID: ID, GID: ID, Size: fi.Size(), Block: 4096, Blocks: (fi.Size() + 4095) / 4096 * 8,
		Atime: fi.ModTime(), Mtime: fi.ModTime(), Ctime: fi.ModTime(),
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st == nil {
		return i
	}
	i.Dev, i.Ino, i.Links, i.Rdev = uint64(st.Dev), st.Ino, uint64(st.Nlink), uint64(st.Rdev)
	i.UID, i.GID, i.Block, i.Blocks = st.Uid, st.Gid, int64(st.Blksize), st.Blocks
	i.times(st)
	return i
}

// Same says whether a and b are one file.
func Same(a, b fs.FileInfo) bool {
	x, y := Of(a), Of(b)
	return x.Dev == y.Dev && x.Ino == y.Ino && x.Ino != 0
}

// Major and Minor are the parts of a device number.
func Major(dev uint64) uint64 { return dev>>8&0xfff | dev>>32&^0xfff }

// Minor is the other part.
func Minor(dev uint64) uint64 { return dev&0xff | dev>>12&^0xff }

// Name is what a user or group is called; an unknown one by its number.
func Name(id uint32) string {
	if id == ID {
		return User
	}
	return strconv.FormatUint(uint64(id), 10)
}

// Units say how sizes are written.
type Units struct {
	Block  int64  // bytes of one; 0: 1
	Human  bool   // 1.5K, 20M
	SI     bool   // powers of 1000
	Suffix string // after each
}

// Format writes n bytes in units, rounded up.
func (u Units) Format(n int64) string {
	if !u.Human {
		b := max(u.Block, 1)
		q := n / b
		if n%b > 0 {
			q++
		}
		return strconv.FormatInt(q, 10) + u.Suffix
	}
	base, letters := int64(1024), "KMGTPEZY"
	if u.SI {
		base, letters = 1000, "kMGTPEZY"
	}
	if n < base {
		return strconv.FormatInt(n, 10)
	}
	whole, rest, power := n, false, -1 // rest: there is a fraction below the tenth
	tenth := int64(0)
	for whole >= base {
		r := whole%base*10 + tenth
		rest = rest || r%base > 0
		tenth = r / base
		whole /= base
		power++
	}
	if whole < 10 {
		if rest {
			tenth++
		}
		if tenth == 10 {
			whole, tenth = whole+1, 0
		}
		if whole < 10 {
			return fmt.Sprintf("%d.%d%c", whole, tenth, letters[power])
		}
		rest, tenth = false, 0
	}
	if tenth > 0 || rest {
		whole++
	}
	if whole == base && power+1 < len(letters) {
		return fmt.Sprintf("1.0%c", letters[power+1])
	}
	return fmt.Sprintf("%d%c", whole, letters[power])
}

// ParseUnits reads the value of --block-size: "K", "1M", "2KB", "human-readable".
func ParseUnits(s string) (Units, bool) {
	switch {
	case len(s) >= 2 && len(s) <= 14 && s == "human-readable"[:len(s)]:
		return Units{Human: true}, true
	case s == "si":
		return Units{Human: true, SI: true}, true
	case len(s) > 1 && s[0] == '\'':
		s = s[1:]
	}
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	n, err := int64(1), error(nil)
	if digits > 0 {
		if n, err = strconv.ParseInt(s[:digits], 10, 64); err != nil || n == 0 {
			return Units{}, false
		}
	}
	suffix := s[digits:]
	if suffix == "" {
		return Units{Block: n}, digits > 0
	}
	power := 0
	for i, c := range []byte("KMGTPE") {
		if suffix[0] == c || suffix[0] == 'k' && c == 'K' {
			power = i + 1
		}
	}
	base := int64(1024)
	switch {
	case power == 0:
		return Units{}, false
	case suffix[1:] == "B":
		base = 1000
	case suffix[1:] != "" && suffix[1:] != "iB":
		return Units{}, false
	}
	for range power {
		if n > (1<<62)/base {
			return Units{}, false
		}
		n *= base
	}
	u := Units{Block: n}
	if digits == 0 {
		if u.Suffix = suffix; base == 1000 && suffix[0] == 'K' {
			u.Suffix = "k" + suffix[1:]
		}
	}
	return u, true
}

// Key identifies a file, whatever its name.
type Key struct{ dev, ino uint64 }

// KeyOf is the key of a file.
func KeyOf(fi fs.FileInfo) Key {
	n := Of(fi)
	return Key{n.Dev, n.Ino}
}
