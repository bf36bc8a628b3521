package mkdir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

func mktemp(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... [TEMPLATE]", "d,directory u,dry-run q,quiet ,suffix: p: ,tmpdir:: t")
	if !ok {
		return
	}
	if len(names) > 1 {
		w.TryHelp("too many templates")
		return
	}
	m := &tempMaker{Work: w, template: "tmp.XXXXXXXXXX", inDir: len(names) == 0}
	if len(names) == 1 {
		m.template = names[0]
	}
	for _, s := range sets {
		switch s.Name {
		case "directory":
			m.directory = true
		case "dry-run":
			m.dry = true
		case "quiet":
			m.quiet = true
		case "suffix":
			m.suffix, m.suffixSet = s.Value, true
		case "p", "tmpdir":
			m.dir, m.inDir = s.Value, true
		case "t":
			m.old, m.inDir = true, true
		}
	}
	m.run()
}

type tempMaker struct {
	*gnu.Work
	template, suffix, dir string
	suffixSet, inDir, old bool
	directory, dry, quiet bool
}

func (m *tempMaker) run() {
	t := m.template
	if m.suffixSet {
		if !strings.HasSuffix(t, "X") {
			m.Die(1, "with --suffix, template %s must end in X", gnu.Quote(t))
			return
		}
	} else if at := strings.LastIndexByte(t, 'X'); at >= 0 {
		t, m.suffix = t[:at+1], t[at+1:]
	}
	if strings.Contains(m.suffix, "/") {
		m.Die(1, "invalid suffix %s, contains directory separator", gnu.Quote(m.suffix))
		return
	}
	stem := strings.TrimRight(t, "X")
	n := len(t) - len(stem)
	if n < 3 {
		m.Die(1, "too few X's in template %s", gnu.Quote(t+m.suffix))
		return
	}
	if m.inDir {
		dir := m.dir
		if m.old || dir == "" {
			if dir = m.Getenv("TMPDIR"); dir == "" {
				dir = m.dir
			}
		}
		if dir == "" {
			dir = "/tmp"
		}
		switch {
		case m.old && strings.Contains(t, "/"):
			m.Die(1, "invalid template, %s, contains directory separator", gnu.Quote(m.template))
			return
		case !m.old && strings.HasPrefix(t, "/"):
			m.Die(1, "invalid template, %s; with --tmpdir, it may not be absolute", gnu.Quote(m.template))
			return
		}
		stem = gnu.Join(dir, stem)
	}
	m.make(stem, n)
}

// tries is how many names are tried before the last error counts.
const tries = 100

func (m *tempMaker) make(stem string, n int) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var err error
	for range tries {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rand.IntN(len(letters))]
		}
		name := stem + string(b) + m.suffix
		switch {
		case m.dry:
			if _, err = gnu.Lstat(m.Work, name); err == nil {
				err = syscall.EEXIST
			} else if errors.Is(err, syscall.ENOENT) {
				err = nil
			}
		case m.directory:
			err = m.FS.Mkdir(m.Path(name), 0o700&^m.Umask)
		default:
			f, e := m.FS.OpenFile(m.Path(name), syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, 0o600&^m.Umask)
			if err = e; e == nil {
				err = f.Close()
			}
		}
		if err == nil {
			fmt.Fprintln(m.Out, name)
			return
		}
		if !errors.Is(err, syscall.EEXIST) {
			break
		}
	}
	m.Status = 1
	if m.quiet {
		return
	}
	kind := "file"
	if m.directory {
		kind = "directory"
	}
	m.Complain("failed to create %s via template %s: %s", kind, gnu.Quote(stem+strings.Repeat("X", n)+m.suffix), command.Reason(err))
}
