package cksum

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// algorithm is one digest and how it is called.
type algorithm struct {
	tag string
	new func() hash.Hash
}

func algorithms() map[string]algorithm {
	return map[string]algorithm{
		"md5sum":    {"MD5", md5.New},
		"sha1sum":   {"SHA1", sha1.New},
		"sha224sum": {"SHA224", sha256.New224},
		"sha256sum": {"SHA256", sha256.New},
		"sha384sum": {"SHA384", sha512.New384},
		"sha512sum": {"SHA512", sha512.New},
	}
}

type want struct {
	algorithm
	binary, tagged, zero                              bool
	check, quiet, status, strict, warn, ignoreMissing bool
}

func digests(w *gnu.Work, a algorithm) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "b,binary c,check t,text w,warn z,zero ,tag ,quiet ,status ,strict ,ignore-missing")
	if !ok {
		return
	}
	d := want{algorithm: a}
	text := false
	for _, o := range sets {
		switch o.Name {
		case "binary":
			d.binary, text = true, false
		case "text":
			d.binary, text = false, true
		case "check":
			d.check = true
		case "warn":
			d.warn, d.status, d.quiet = true, false, false
		case "zero":
			d.zero = true
		case "tag":
			d.tagged, d.binary = true, true
		case "quiet":
			d.quiet, d.status, d.warn = true, false, false
		case "status":
			d.status, d.warn, d.quiet = true, false, false
		case "strict":
			d.strict = true
		case "ignore-missing":
			d.ignoreMissing = true
		}
	}
	if !d.sensible(w, text) {
		return
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		if d.check {
			d.checkList(w, name)
			continue
		}
		sum, err := d.file(w, name)
		if err != nil {
			w.Fault("%s: %s", gnu.QuoteName(name), command.Reason(err))
			continue
		}
		d.print(w, sum, name)
	}
}

// sensible refuses what does not go together.
func (d *want) sensible(w *gnu.Work, text bool) bool {
	bad := ""
	switch {
	case d.tagged && text:
		bad = "--tag does not support --text mode"
	case d.check && d.zero:
		bad = "the --zero option is not supported when verifying checksums"
	case d.tagged && d.check:
		bad = "the --tag option is meaningless when verifying checksums"
	case d.check && (d.binary || text):
		bad = "the --binary and --text options are meaningless when verifying checksums"
	case d.check:
		return true
	case d.ignoreMissing:
		bad = "the --ignore-missing option is meaningful only when verifying checksums"
	case d.status:
		bad = "the --status option is meaningful only when verifying checksums"
	case d.warn:
		bad = "the --warn option is meaningful only when verifying checksums"
	case d.quiet:
		bad = "the --quiet option is meaningful only when verifying checksums"
	case d.strict:
		bad = "the --strict option is meaningful only when verifying checksums"
	default:
		return true
	}
	w.TryHelp("%s", bad)
	return false
}

func (d *want) file(w *gnu.Work, name string) (string, error) {
	r, err := w.Open(name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	h := d.new()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, r, make([]byte, 64<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

var escaper = strings.NewReplacer("\\", `\\`, "\n", `\n`, "\r", `\r`)

func (d *want) print(w *gnu.Work, sum, name string) {
	end := byte('\n')
	if d.zero {
		end = 0
	} else if strings.ContainsAny(name, "\\\n\r") {
		name = escaper.Replace(name)
		w.Out.WriteByte('\\')
	}
	switch {
	case d.tagged:
		fmt.Fprintf(w.Out, "%s (%s) = %s%c", d.tag, name, sum, end)
	case d.binary:
		fmt.Fprintf(w.Out, "%s *%s%c", sum, name, end)
	default:
		fmt.Fprintf(w.Out, "%s  %s%c", sum, name, end)
	}
}

// tally counts what a list of sums comes to.
type tally struct{ good, malformed, unread, wrong, matched int }

func (d *want) checkList(w *gnu.Work, list string) {
	r, err := w.Open(list)
	if err != nil {
		w.Fault("%s: %s", gnu.QuoteName(list), command.Reason(err))
		return
	}
	defer r.Close()
	shown := list
	if list == "-" {
		shown = "'standard input'"
	} else {
		shown = gnu.QuoteName(list)
	}
	var t tally
	lines := w.Lines(r, '\n')
	for n := 1; ; n++ {
		text, err := lines.Text()
		if err != nil {
			if !errors.Is(err, io.EOF) && w.Ctx.Err() == nil {
				w.Fault("%s: %s", shown, command.Reason(err))
				return
			}
			break
		}
		text = bytes.TrimSuffix(text, []byte{'\r'})
		if len(text) > 0 && text[0] == '#' {
			continue
		}
		sum, name, ok := d.parse(string(text))
		if !ok || list == "-" && name == "-" {
			t.malformed++
			if d.warn {
				w.Complain("%s: %d: improperly formatted %s checksum line", shown, n, d.tag)
			}
			continue
		}
		t.good++
		d.verify(w, &t, sum, name)
	}
	d.conclude(w, &t, shown)
}

// parse reads "SUM  NAME", "SUM *NAME" and "TAG (NAME) = SUM", escaped or not.
func (d *want) parse(line string) (sum, name string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	line, escaped := strings.CutPrefix(line, `\`)
	if rest, tagged := strings.CutPrefix(line, d.tag); tagged && (strings.HasPrefix(rest, " (") || strings.HasPrefix(rest, "(")) {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, " "), "(")
		at := strings.LastIndex(rest, ")")
		if at < 0 {
			return "", "", false
		}
		name = rest[:at]
		sum, ok = strings.CutPrefix(strings.TrimLeft(rest[at+1:], " \t"), "=")
		sum = strings.TrimLeft(sum, " \t")
		if !ok {
			return "", "", false
		}
	} else {
		n := len(line) - len(strings.TrimLeft(line, "0123456789abcdefABCDEF"))
		if n == 0 || len(line) < n+2 || line[n] != ' ' && line[n] != '\t' {
			return "", "", false
		}
		sum, name = line[:n], line[n+1:]
		if name[0] == ' ' || name[0] == '*' {
			name = name[1:]
		}
	}
	if b, err := hex.DecodeString(sum); err != nil || len(b) != d.new().Size() || name == "" {
		return "", "", false
	}
	if escaped {
		name = strings.NewReplacer(`\\`, "\\", `\n`, "\n", `\r`, "\r").Replace(name)
	}
	return strings.ToLower(sum), name, true
}

func (d *want) verify(w *gnu.Work, t *tally, sum, name string) {
	shown := name
	if strings.ContainsAny(name, "\n\r") {
		shown = `\` + escaper.Replace(name)
	}
	got, err := d.file(w, name)
	switch {
	case err != nil && d.ignoreMissing && command.Reason(err) == "No such file or directory":
		return
	case err != nil:
		t.unread++
		w.Complain("%s: %s", gnu.QuoteName(name), command.Reason(err))
		if !d.status {
			fmt.Fprintf(w.Out, "%s: FAILED open or read\n", shown)
		}
	case got != sum:
		t.wrong++
		if !d.status {
			fmt.Fprintf(w.Out, "%s: FAILED\n", shown)
		}
	default:
		t.matched++
		if !d.status && !d.quiet {
			fmt.Fprintf(w.Out, "%s: OK\n", shown)
		}
	}
}

func (d *want) conclude(w *gnu.Work, t *tally, list string) {
	if t.good == 0 {
		w.Fault("%s: no properly formatted checksum lines found", list)
		return
	}
	if !d.status {
		for _, c := range []struct {
			n         int
			one, many string
		}{
			{t.malformed, "line is improperly formatted", "lines are improperly formatted"},
			{t.unread, "listed file could not be read", "listed files could not be read"},
			{t.wrong, "computed checksum did NOT match", "computed checksums did NOT match"},
		} {
			if c.n == 1 {
				w.Complain("WARNING: 1 %s", c.one)
			} else if c.n > 1 {
				w.Complain("WARNING: %d %s", c.n, c.many)
			}
		}
	}
	if d.ignoreMissing && t.matched == 0 && !d.status {
		w.Complain("%s: no file was verified", list)
	}
	if t.unread > 0 || t.wrong > 0 || t.matched == 0 || d.strict && t.malformed > 0 {
		w.Status = 1
	}
}
