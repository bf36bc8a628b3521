package sort

import (
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

const sortOptions = "b,ignore-leading-blanks c C ,check:: ,debug d,dictionary-order f,ignore-case g,general-numeric-sort h,human-numeric-sort " +
	"i,ignore-nonprinting k:,key: M,month-sort m,merge n,numeric-sort o:,output: R,random-sort r,reverse s,stable S:,buffer-size: " +
	"T:,temporary-directory: t:,field-separator: u,unique V,version-sort z,zero-terminated ,batch-size: ,compress-program: ,files0-from: ,parallel: ,random-source: ,sort:"

// options reads all of them; ok is false when the call is over.
func (s *sorter) options(w *gnu.Work) (operands []string, ok bool) {
	w.Args = sortObsolete(w.Args)
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", sortOptions)
	if !ok {
		return nil, false
	}
	from, random := "", ""
	for _, o := range sets {
		switch o.Name {
		case "files0-from":
			from = o.Value
		case "random-source":
			random = o.Value
		default:
			if !s.set(w, o) {
				return nil, false
			}
		}
	}
	if from != "" {
		if operands, ok = sortNames(w, from, operands); !ok {
			return nil, false
		}
	}
	if !s.settle(w) {
		return nil, false
	}
	return operands, s.sow(w, random)
}

// sortObsolete turns "+1 -2" into "-k 2,2".
func sortObsolete(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if i == 0 || !sortNumbered(a, '+') {
			out = append(out, a)
			continue
		}
		key := sortPosition(a[1:], 1)
		if i+1 < len(args) && sortNumbered(args[i+1], '-') {
			i++
			key += "," + sortPosition(args[i][1:], 0)
		}
		out = append(out, "-k", key)
	}
	return out
}

func sortNumbered(a string, sign byte) bool {
	return len(a) > 1 && a[0] == sign && a[1] >= '0' && a[1] <= '9'
}

func sortPosition(s string, add int) string {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n := 0
	for _, c := range s[:digits] {
		n = min(n*10+int(c-'0'), 1<<30)
	}
	return fmt.Sprint(n+add) + s[digits:]
}

// set takes one option.
func (s *sorter) set(w *gnu.Work, o command.Set) bool {
	switch o.Name {
	case "c", "C":
		return s.setCheck(w, o.Name[0])
	case "check":
		word, ok := "diagnose-first", true
		if o.Given {
			word, ok = gnu.Word(o.Value, "quiet", "silent", "diagnose-first")
		}
		if !ok {
			w.TryHelp("invalid argument %s for ‘--check’\nValid arguments are:\n  - ‘quiet’, ‘silent’\n  - ‘diagnose-first’", gnu.Quote(o.Value))
			w.Status = 1
			return false
		}
		if word == "diagnose-first" {
			return s.setCheck(w, 'c')
		}
		return s.setCheck(w, 'C')
	case "debug":
		w.Refuse("--debug")
		return false
	case "key":
		k, err := parseSortKey(o.Value)
		if err != nil {
			w.Die(2, "%s", err)
			return false
		}
		s.keys = append(s.keys, k)
	case "merge":
		s.merge = true
	case "output":
		if s.outGiven && s.out != o.Value {
			w.Die(2, "multiple output files specified")
			return false
		}
		s.out, s.outGiven = o.Value, true
	case "stable":
		s.stable = true
	case "unique":
		s.unique = true
	case "zero-terminated":
		s.end = 0
	case "field-separator":
		return s.setTab(w, o.Value)
	case "sort":
		word, ok := gnu.Word(o.Value, "general-numeric", "human-numeric", "month", "numeric", "random", "version")
		if !ok {
			w.TryHelp("invalid argument %s for ‘--sort’\nValid arguments are:\n  - ‘general-numeric’\n  - ‘human-numeric’\n  - ‘month’\n  - ‘numeric’\n  - ‘random’\n  - ‘version’", gnu.Quote(o.Value))
			w.Status = 1
			return false
		}
		s.global.flag("ghMnRV"[strings.Index("ghmnrv", word[:1])], true, true)
	case "buffer-size":
		if _, err := gnu.Size(strings.TrimSuffix(o.Value, "%"), "bEgGkKmMPtTYZ"); err != nil && !errors.Is(err, gnu.ErrOverflow) {
			w.Die(2, "invalid -S argument %s", gnu.QuoteShell(o.Value))
			return false
		}
	case "temporary-directory", "batch-size", "compress-program", "parallel":
		// These are about speed alone.
	default:
		letter := sortLetters[o.Name]
		s.global.flag(letter, true, true)
	}
	return true
}

var sortLetters = map[string]byte{
	"ignore-leading-blanks": 'b', "dictionary-order": 'd', "ignore-case": 'f', "general-numeric-sort": 'g', "human-numeric-sort": 'h',
	"ignore-nonprinting": 'i', "month-sort": 'M', "numeric-sort": 'n', "random-sort": 'R', "reverse": 'r', "version-sort": 'V',
}

func (s *sorter) setCheck(w *gnu.Work, c byte) bool {
	if s.check != 0 && s.check != c {
		w.Die(2, "options '-cC' are incompatible")
		return false
	}
	s.check = c
	return true
}

func (s *sorter) setTab(w *gnu.Work, value string) bool {
	tab := 0
	switch {
	case value == "":
		w.Die(2, "empty tab")
		return false
	case value == `\0`:
	case len(value) > 1:
		w.Die(2, "multi-character tab %s", gnu.Quote(value))
		return false
	default:
		tab = int(value[0])
	}
	if s.tab >= 0 && s.tab != tab {
		w.Die(2, "incompatible tabs")
		return false
	}
	s.tab = tab
	return true
}

// settle gives the keys what the options outside of them say.
func (s *sorter) settle(w *gnu.Work) bool {
	for i := range s.keys {
		if k := &s.keys[i]; k.plain() && !k.reverse {
			g := s.global
			g.sword, g.schar, g.eword, g.echar = k.sword, k.schar, k.eword, k.echar
			*k = g
		}
	}
	if len(s.keys) == 0 && !s.global.plain() {
		s.keys = []sortKey{s.global}
	}
	for i := range s.keys {
		if bad := s.keys[i].incompatible(); bad != "" {
			w.Die(2, "options '-%s' are incompatible", bad)
			return false
		}
	}
	if s.check != 0 && s.outGiven {
		w.Die(2, "options '-%co' are incompatible", s.check)
		return false
	}
	return true
}

// sow makes the seed of -R.
func (s *sorter) sow(w *gnu.Work, source string) bool {
	random := false
	for _, k := range s.keys {
		random = random || k.kind == 'R'
	}
	if !random {
		return true
	}
	s.seed = make([]byte, 16)
	if source == "" {
		_, _ = rand.Read(s.seed)
		return true
	}
	r, err := w.Open(source)
	if err == nil {
		_, err = io.ReadFull(r, s.seed)
		_ = r.Close()
	}
	if err != nil {
		w.Die(2, "%s: %s", gnu.QuoteName(source), command.Reason(err))
		return false
	}
	return true
}

func sortNames(w *gnu.Work, from string, operands []string) ([]string, bool) {
	if len(operands) > 0 {
		w.TryHelp("extra operand %s\nfile operands cannot be combined with --files0-from", gnu.Quote(operands[0]))
		return nil, false
	}
	r, err := w.Open(from)
	if err != nil {
		w.Die(2, "open failed: %s: %s", from, command.Reason(err))
		return nil, false
	}
	defer r.Close()
	all, err := w.All(r)
	if err != nil || len(all) == 0 {
		w.Die(2, "no input from %s", gnu.Quote(from))
		return nil, false
	}
	return strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00"), true
}

// shuffled is the order of -R: of a hash, so that equal keys stay together.
func shuffled(a, b, seed []byte) (x, y [md5.Size]byte) {
	return md5.Sum(append(append([]byte{}, seed...), a...)), md5.Sum(append(append([]byte{}, seed...), b...))
}
