package date

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

const dateSpec = "d,date: ,debug f,file: I,iso-8601:: r,reference: R,rfc-email ,rfc-822 ,rfc-2822 ,rfc-3339: ,resolution s,set: u,utc ,uct ,universal"

// dateCall is what date was asked.
type dateCall struct {
	*gnu.Work
	zone    *time.Location
	sources int
	kind    string // how the time is given: "date", "file", "reference"; "": now
	value   string
	set     bool
	format  string
}

func date(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [+FORMAT]", dateSpec)
	if !ok {
		return
	}
	d := &dateCall{Work: w, zone: Zone(w.Getenv("TZ"))}
	for _, s := range sets {
		if !d.option(s) {
			return
		}
	}
	if d.sources > 1 {
		w.TryHelp("the options to specify dates for printing are mutually exclusive")
		return
	}
	if !d.operands(operands) {
		return
	}
	if d.format == "" {
		d.format = "%a %b %e %H:%M:%S %Z %Y"
	}
	if d.kind == "file" {
		d.lines()
		return
	}
	t, ok := d.time()
	if !ok {
		return
	}
	if d.set {
		w.Fault("cannot set date: Operation not permitted")
	}
	d.print(t)
}

func (d *dateCall) option(s command.Set) bool {
	switch s.Name {
	case "date", "file", "reference":
		d.sources++
		if s.Name == d.kind {
			d.sources--
		}
		d.kind, d.value = s.Name, s.Value
	case "set":
		d.set = true
		d.kind, d.value = "date", s.Value
	case "utc", "uct", "universal":
		d.zone = Zone("UTC0")
	case "rfc-email", "rfc-822", "rfc-2822":
		return d.setFormat("%a, %d %b %Y %H:%M:%S %z")
	case "resolution":
		return d.setFormat("%s.%N")
	case "iso-8601":
		f, ok := d.precision(s.Name, s.Value, map[string]string{
			"": "%Y-%m-%d", "date": "%Y-%m-%d", "hours": "%Y-%m-%dT%H%:z", "minutes": "%Y-%m-%dT%H:%M%:z",
			"seconds": "%Y-%m-%dT%H:%M:%S%:z", "ns": "%Y-%m-%dT%H:%M:%S,%N%:z",
		}, []string{"hours", "minutes", "date", "seconds", "ns"})
		return ok && d.setFormat(f)
	case "rfc-3339":
		f, ok := d.precision(s.Name, s.Value, map[string]string{
			"date": "%Y-%m-%d", "seconds": "%Y-%m-%d %H:%M:%S%:z", "ns": "%Y-%m-%d %H:%M:%S.%N%:z",
		}, []string{"date", "seconds", "ns"})
		return ok && d.setFormat(f)
	case "debug": // tells on stderr how the text was read; nothing of it is a result
	}
	return true
}

// precision finds the format that value, or a beginning of it, stands for.
func (d *dateCall) precision(option, value string, formats map[string]string, names []string) (string, bool) {
	if f, ok := formats[value]; ok {
		return f, true
	}
	problem := "invalid"
	for _, name := range names {
		if strings.HasPrefix(name, value) && value != "" {
			return formats[name], true
		}
		if value == "" {
			problem = "ambiguous"
		}
	}
	text := fmt.Sprintf("%s argument %s for %s\nValid arguments are:", problem, gnu.Quote(value), gnu.Quote("--"+option))
	for _, name := range names {
		text += "\n  - " + gnu.Quote(name)
	}
	d.TryHelp("%s", text)
	return "", false
}

func (d *dateCall) setFormat(f string) bool {
	if d.format != "" {
		d.Die(1, "multiple output formats specified")
		return false
	}
	d.format = f
	return true
}

func (d *dateCall) operands(operands []string) bool {
	if len(operands) == 0 {
		return true
	}
	if len(operands) > 1 && (operands[0][:min(1, len(operands[0]))] == "+" || d.sources > 0) {
		d.TryHelp("extra operand %s", gnu.Quote(operands[1]))
		return false
	}
	f, plus := strings.CutPrefix(operands[0], "+")
	switch {
	case plus && d.format != "":
		d.Die(1, "multiple output formats specified")
		return false
	case plus:
		d.format = f
		if f == "" {
			_, _ = d.Out.WriteString("\n")
			return false
		}
		return true
	case d.sources > 0 || d.set:
		d.TryHelp("the argument %s lacks a leading '+';\nwhen using an option to specify date(s), any non-option\nargument must be a format string beginning with '+'", gnu.Quote(operands[0]))
		return false
	}
	d.Die(1, "invalid date %s", gnu.Quote(operands[0]))
	return false
}

func (d *dateCall) time() (time.Time, bool) {
	now := d.Now().In(d.zone)
	switch d.kind {
	case "date":
		t, err := Parse(d.value, now)
		if err != nil {
			d.Die(1, "invalid date %s", gnu.Quote(d.value))
			return t, false
		}
		return t, true
	case "reference":
		fi, err := d.FS.Stat(d.Path(d.value))
		if err != nil {
			d.Die(1, "%s: %s", gnu.QuoteName(d.value), command.Reason(err))
			return now, false
		}
		return fi.ModTime().In(d.zone), true
	}
	return now, true
}

func (d *dateCall) print(t time.Time) {
	_, _ = d.Out.WriteString(Format(d.format, t) + "\n")
}

// lines prints the date on each line of a file.
func (d *dateCall) lines() {
	r, err := d.Open(d.value)
	if err != nil {
		d.Die(1, "%s: %s", gnu.QuoteName(d.value), command.Reason(err))
		return
	}
	defer r.Close()
	lines := d.Lines(r, '\n')
	for {
		line, err := lines.Text()
		if errors.Is(err, io.EOF) || d.Ctx.Err() != nil {
			return
		}
		if err != nil {
			d.Fault("%s: %s", gnu.QuoteName(d.value), command.Reason(err))
			return
		}
		t, err := Parse(string(line), d.Now().In(d.zone))
		if err != nil {
			d.Fault("invalid date %s", gnu.Quote(string(line)))
			continue
		}
		d.print(t)
	}
}
