package awk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/regex"
)

// interp runs a program.
type interp struct {
	ctx  context.Context
	c    *command.Call
	prog *program
	io   *streams
	rec  record

	globals  []*cell
	special  []specialVar // by slot
	frame    []*cell
	regexes  map[string]*regex.Regexp
	random   *rand.Rand
	seed     float64
	prevSeed float64
	status   int
	steps    int
	depth    int
	line     int
	result   value // of a return
	size     int64 // bytes that arrays and strings may have grown to, roughly

	nr, fnr                         float64
	convfmt, ofmt, ofs, ors, subsep string
	ignoreCase                      bool
	bytes                           bool
	inEnd                           bool
}

// flow is how a statement ends.
type flow int

const (
	fNormal flow = iota
	fBreak
	fContinue
	fNext
	fNextFile
	fExit
	fReturn
)

// specialVar is a variable that means something.
type specialVar int

const (
	svNone specialVar = iota
	svNR
	svFNR
	svNF
	svFS
	svOFS
	svORS
	svRS
	svSUBSEP
	svCONVFMT
	svOFMT
	svIGNORECASE
	svFPAT
	svFIELDWIDTHS
)

func specials() map[string]specialVar {
	return map[string]specialVar{
		"NR": svNR, "FNR": svFNR, "NF": svNF, "FS": svFS, "OFS": svOFS, "ORS": svORS, "RS": svRS, "SUBSEP": svSUBSEP,
		"CONVFMT": svCONVFMT, "OFMT": svOFMT, "IGNORECASE": svIGNORECASE, "FPAT": svFPAT, "FIELDWIDTHS": svFIELDWIDTHS,
	}
}

// Bounds of one run, beside those of the budget.
const (
	maxCalls   = 1000
	maxRegexes = 500
)

func newInterp(ctx context.Context, c *command.Call, prog *program) *interp {
	in := &interp{
		ctx: ctx, c: c, prog: prog, regexes: map[string]*regex.Regexp{}, random: rand.New(rand.NewSource(0)),
		convfmt: "%.6g", ofmt: "%.6g", ofs: " ", ors: "\n", subsep: "\x1c", bytes: byteLocale(c),
	}
	in.io = newStreams(in)
	in.rec.in = in
	return in
}

func byteLocale(c *command.Call) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := c.Getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

// slot is the place of a global variable, which is made when it is not there.
func (in *interp) slot(name string) int {
	slot, ok := in.prog.globals[name]
	if !ok {
		slot = len(in.prog.globals)
		in.prog.globals[name] = slot
	}
	for len(in.globals) <= slot {
		in.globals = append(in.globals, &cell{})
		in.special = append(in.special, svNone)
	}
	return slot
}

// setup sets the variables that are there at the begin.
func (in *interp) setup(o *options) error {
	for name := range in.prog.globals {
		in.slot(name)
	}
	for name, sv := range specials() {
		in.special[in.slot(name)] = sv
	}
	initial := map[string]value{
		"FS": str(" "), "OFS": str(" "), "ORS": str("\n"), "RS": str("\n"), "SUBSEP": str("\x1c"), "CONVFMT": str("%.6g"), "OFMT": str("%.6g"),
		"RSTART": num(0), "RLENGTH": num(-1), "FPAT": str("[^[:space:]]+"), "FIELDWIDTHS": str(""), "IGNORECASE": num(0), "RT": str(""),
		"BINMODE": num(0), "ERRNO": str(""), "TEXTDOMAIN": str("messages"), "ARGIND": num(0),
	}
	for name, v := range initial {
		if err := in.setGlobal(name, v); err != nil {
			return err
		}
	}
	in.rec.mode = bySeparator
	in.globals[in.slot("PROCINFO")].array()
	proc := in.globals[in.slot("PROCINFO")].arr
	for name, v := range map[string]value{
		"version": str("5.2.1"), "FS": str("FS"), "strftime": str("%a %b %e %H:%M:%S %Z %Y"), "platform": str("posix"),
		"uid": num(1000), "gid": num(1000), "euid": num(1000), "egid": num(1000), "pid": num(2), "ppid": num(1), "pgrpid": num(1),
	} {
		proc.set(name, v)
	}
	env := in.globals[in.slot("ENVIRON")].array()
	for _, kv := range in.c.Env {
		k, v, _ := strings.Cut(kv, "=")
		env.set(k, input(v))
	}
	argv := in.globals[in.slot("ARGV")].array()
	argv.set("0", str(in.c.Args[0]))
	for i, a := range o.operands {
		argv.set(fmt.Sprint(i+1), input(a))
	}
	if err := in.setGlobal("ARGC", num(float64(len(o.operands)+1))); err != nil {
		return err
	}
	if o.fs != nil {
		if err := in.setGlobal("FS", str(*o.fs)); err != nil {
			return err
		}
	}
	for _, a := range o.assigns {
		if err := in.assignment(a); err != nil {
			return err
		}
	}
	return nil
}

// assignment is "var=value" of the command line.
func (in *interp) assignment(a string) error {
	name, text, _ := strings.Cut(a, "=")
	return in.setGlobal(name, input(unescape(text)))
}

func (in *interp) setGlobal(name string, v value) error {
	slot := in.slot(name)
	return in.setSlot(slot, v)
}

// main runs the whole program.
func (in *interp) main() error {
	for _, s := range in.prog.begin {
		f, err := in.run(s)
		if err != nil {
			return err
		}
		if f == fExit {
			return in.atEnd()
		}
	}
	if len(in.prog.rules)+len(in.prog.end)+len(in.prog.beginFile)+len(in.prog.endFile) > 0 {
		if err := in.records(); err != nil {
			return err
		}
	}
	return in.atEnd()
}

// atEnd runs the END rules, once.
func (in *interp) atEnd() error {
	if in.inEnd {
		return nil
	}
	in.inEnd = true
	for _, s := range in.prog.end {
		f, err := in.run(s)
		if err != nil || f == fExit {
			return err
		}
	}
	return nil
}

// records runs the rules over all input.
func (in *interp) records() error {
	for {
		ok, err := in.rec.next()
		if err != nil || !ok {
			return err
		}
		f, err := in.rules()
		if err != nil {
			return err
		}
		switch f {
		case fExit:
			return nil
		case fNextFile:
			if err := in.rec.skipFile(); err != nil {
				return err
			}
		}
		if in.rec.stopped {
			return nil
		}
	}
}

func (in *interp) rules() (flow, error) {
	for _, r := range in.prog.rules {
		in.line = r.line
		match, err := in.selects(r)
		if err != nil {
			return fNormal, err
		}
		if !match {
			continue
		}
		if r.body == nil {
			if err := in.io.stdout.write(in.rec.text() + in.ors); err != nil {
				return fNormal, err
			}
			continue
		}
		f, err := in.run(r.body)
		switch {
		case err != nil || f == fExit || f == fNextFile:
			return f, err
		case f == fNext:
			return fNormal, nil
		}
	}
	return fNormal, nil
}

func (in *interp) selects(r *rule) (bool, error) {
	if r.from == nil {
		return true, nil
	}
	if r.to == nil {
		return in.truth(r.from)
	}
	if !r.active {
		ok, err := in.truth(r.from)
		if !ok || err != nil {
			return false, err
		}
	}
	end, err := in.truth(r.to)
	r.active = !end
	return true, err
}

func (in *interp) truth(e expr) (bool, error) {
	v, err := in.eval(e)
	return v.truth(), err
}

// step counts one step, and ends a run that is over.
func (in *interp) step() error { return in.spend(1) }

// spend counts n steps.
func (in *interp) spend(n int) error {
	if in.steps += n; in.steps < 1024 {
		return nil
	}
	n, in.steps = in.steps, 0
	if err := in.ctx.Err(); err != nil {
		return err
	}
	return in.c.Budget.Steps(int64(n))
}

// fatal is how gawk tells of an error at run time.
func (in *interp) fatal(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = fmt.Errorf("%s failure (%s)", at.Op, command.Reason(at.Err))
	}
	if in.nr > 0 {
		return fmt.Sprintf("cmd. line:%d: (FILENAME=%s FNR=%s) fatal: %v", in.line, in.rec.name, num(in.fnr).text("%d"), err)
	}
	return fmt.Sprintf("cmd. line:%d: fatal: %v", in.line, err)
}

// compile compiles a regex, and keeps it.
func (in *interp) compile(src string) (*regex.Regexp, error) {
	key := src
	if in.ignoreCase {
		key = "i" + src
	} else {
		key = "c" + src
	}
	if re := in.regexes[key]; re != nil {
		return re, nil
	}
	re, err := regex.Compile(src, regex.Options{Syntax: regex.Awk, Fold: in.ignoreCase, Bytes: in.bytes, Steps: in.c.Budget.Steps})
	if err != nil {
		return nil, fmt.Errorf("invalid regexp: %w: /%s/", err, src)
	}
	if len(in.regexes) >= maxRegexes {
		clear(in.regexes)
	}
	in.regexes[key] = re
	return re, nil
}

// limit reports a string that is too long, and counts the work of making it.
func (in *interp) limit(n int) error {
	if l := &in.c.Budget.Limits; int64(n) > min(l.String, l.Memory/8) { // it and what it is made of are held at once
		return errors.New("a string is longer than the limit of this run")
	}
	return in.spend(n / 64)
}
