// Package modes reads and writes file modes as chmod(1) and ls(1) do.
package modes

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// Bits are the twelve bits of a mode as the system counts them: 07777.
type Bits uint32

const (
	setuid Bits = 0o4000
	setgid Bits = 0o2000
	sticky Bits = 0o1000
	exec   Bits = 0o111
)

// Of reports the bits of a file.
func Of(m fs.FileMode) Bits {
	b := Bits(m.Perm())
	if m&fs.ModeSetuid != 0 {
		b |= setuid
	}
	if m&fs.ModeSetgid != 0 {
		b |= setgid
	}
	if m&fs.ModeSticky != 0 {
		b |= sticky
	}
	return b
}

// FileMode is b as package fs has it.
func (b Bits) FileMode() fs.FileMode {
	m := fs.FileMode(b & 0o777)
	if b&setuid != 0 {
		m |= fs.ModeSetuid
	}
	if b&setgid != 0 {
		m |= fs.ModeSetgid
	}
	if b&sticky != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// String is how ls -l shows a mode: "drwxr-xr-x".
func String(m fs.FileMode) string {
	b := Of(m)
	s := []byte{typeLetter(m)}
	for i := range 9 {
		if b&(1<<(8-i)) != 0 {
			s = append(s, "rwx"[i%3])
		} else {
			s = append(s, '-')
		}
	}
	for i, set := range []Bits{setuid, setgid, sticky} {
		at := 3 * (i + 1)
		on, off := byte('s'), byte('S')
		if set == sticky {
			on, off = 't', 'T'
		}
		if b&set == 0 {
			continue
		}
		if s[at] == 'x' {
			s[at] = on
		} else {
			s[at] = off
		}
	}
	return string(s)
}

func typeLetter(m fs.FileMode) byte {
	switch {
	case m.IsDir():
		return 'd'
	case m&fs.ModeSymlink != 0:
		return 'l'
	case m&fs.ModeNamedPipe != 0:
		return 'p'
	case m&fs.ModeSocket != 0:
		return 's'
	case m&fs.ModeCharDevice != 0:
		return 'c'
	case m&fs.ModeDevice != 0:
		return 'b'
	}
	return '-'
}

// Kind is S_IFMT of a mode, as stat(2) reports it.
func Kind(m fs.FileMode) uint32 {
	switch typeLetter(m) {
	case 'd':
		return syscall.S_IFDIR
	case 'l':
		return syscall.S_IFLNK
	case 'p':
		return syscall.S_IFIFO
	case 's':
		return syscall.S_IFSOCK
	case 'c':
		return syscall.S_IFCHR
	case 'b':
		return syscall.S_IFBLK
	}
	return syscall.S_IFREG
}

// ErrSyntax is what Parse reports.
var ErrSyntax = errors.New("invalid mode")

// Change is a change of mode, octal or symbolic.
type Change struct{ steps []step }

// step is one operator with what it works on.
type step struct {
	op       byte // = + -
	affected Bits // 0: nobody was named, the umask counts
	value    Bits
	named    Bits // of an octal step: the bits it speaks of
	capX     bool
	copyFrom Bits // u, g or o, as the bits of that class
}

// Parse reads "755", "u+x,go=r", "a=rX" or "=644".
func Parse(s string) (Change, error) {
	if s != "" && s[0] >= '0' && s[0] <= '7' {
		n, err := strconv.ParseUint(s, 8, 32)
		if err != nil || n > 0o7777 {
			return Change{}, ErrSyntax
		}
		named := setuid | setgid | sticky | 0o777
		if len(s) < 5 {
			named = Bits(n)&(setuid|setgid) | sticky | 0o777
		}
		return Change{[]step{{op: '=', affected: 0o7777, value: Bits(n), named: named}}}, nil
	}
	var c Change
	for clause := range strings.SplitSeq(s, ",") {
		steps, ok := parseClause(clause)
		if !ok {
			return Change{}, ErrSyntax
		}
		c.steps = append(c.steps, steps...)
	}
	return c, nil
}

func parseClause(s string) ([]step, bool) {
	var who Bits
	for s != "" && strings.IndexByte("ugoa", s[0]) >= 0 {
		who |= map[byte]Bits{'u': setuid | 0o700, 'g': setgid | 0o070, 'o': sticky | 0o007, 'a': 0o7777}[s[0]]
		s = s[1:]
	}
	var list []step
	for s != "" && strings.IndexByte("=+-", s[0]) >= 0 {
		st := step{op: s[0], affected: who}
		s = s[1:]
		switch {
		case s != "" && s[0] >= '0' && s[0] <= '7':
			if who != 0 {
				return nil, false
			}
			n, err := strconv.ParseUint(s, 8, 32)
			if err != nil || n > 0o7777 {
				return nil, false
			}
			st.affected, st.value, st.named = 0o7777, Bits(n), 0o7777
			return append(list, st), true
		case s != "" && strings.IndexByte("ugo", s[0]) >= 0:
			st.copyFrom = map[byte]Bits{'u': 0o700, 'g': 0o070, 'o': 0o007}[s[0]]
			s = s[1:]
		default:
			s = st.letters(s)
		}
		list = append(list, st)
	}
	return list, s == "" && len(list) > 0
}

func (st *step) letters(s string) string {
	for ; s != ""; s = s[1:] {
		switch s[0] {
		case 'r':
			st.value |= 0o444
		case 'w':
			st.value |= 0o222
		case 'x':
			st.value |= exec
		case 'X':
			st.capX = true
		case 's':
			st.value |= setuid | setgid
		case 't':
			st.value |= sticky
		default:
			return s
		}
	}
	return s
}

// Apply reports what the change makes of old. What names nobody ("+x") leaves
// out the bits of umask.
func (c Change) Apply(old Bits, dir bool, umask fs.FileMode) Bits {
	mode := old
	for _, st := range c.steps {
		mode = st.apply(mode, dir, Bits(umask.Perm()))
	}
	return mode
}

func (st step) apply(mode Bits, dir bool, umask Bits) Bits {
	value := st.value
	omit := Bits(0)
	if dir {
		omit = setuid | setgid
		if st.named != 0 {
			omit &^= st.named
		} else {
			omit &^= value
		}
	}
	if st.copyFrom != 0 {
		value = spread(mode, st.copyFrom)
	}
	if st.capX && (dir || mode&exec != 0) {
		value |= exec
	}
	if st.affected != 0 {
		value &= st.affected
	} else {
		value &^= umask
	}
	value &^= omit
	switch st.op {
	case '+':
		return mode | value
	case '-':
		return mode &^ value
	}
	preserved := omit
	if st.affected != 0 {
		preserved |= ^st.affected
	}
	return mode&preserved | value
}

// spread gives everybody what the class that from names has.
func spread(mode, from Bits) Bits {
	m := mode & from
	var v Bits
	if m&0o444 != 0 {
		v |= 0o444
	}
	if m&0o222 != 0 {
		v |= 0o222
	}
	if m&0o111 != 0 {
		v |= 0o111
	}
	return v
}
