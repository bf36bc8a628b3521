package awk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
	"egressd/hermetic/internal/regex"
)

// interp runs a program.
type interp struct {
	ctx  context.Context
	c    *command.Call
	prog *syntax.Program
	io   *streams
	rec  record

	globals  []*value.Cell
	special  []specialVar // by slot
	frame    []*value.Cell
	regexes  map[string]*regex.Regexp
	random   *rand.Rand
	seed     float64
	prevSeed float64
	status   int
	steps    int
	depth    int
	line     int
	result   value.Value // of a return
	size     int64       // bytes that arrays and strings may have grown to, roughly

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

func newInterp(ctx context.Context, c *command.Call, prog *syntax.Program) *interp {
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
	slot, ok := in.prog.Globals[name]
	if !ok {
		slot = len(in.prog.Globals)
		in.prog.Globals[name] = slot
	}
	for len(in.globals) <= slot {
		in.globals = append(in.globals, &value.Cell{})
		in.special = append(in.special, svNone)
	}
	return slot
}

// setup sets the variables that are there at the begin.
func (in *interp) setup(o *options) error {
	for name := range in.prog.Globals {
		in.slot(name)
	}
	for name, sv := range specials() {
		in.special[in.slot(name)] = sv
	}
	initial := map[string]value.Value{
		"FS": value.Str(" "), "OFS": value.Str(" "), "ORS": value.Str("\n"), "RS": value.Str("\n"), "SUBSEP": value.Str("\x1c"), "CONVFMT": value.Str("%.6g"), "OFMT": value.Str("%.6g"),
		"RSTART": value.Num(0), "RLENGTH": value.Num(-1), "FPAT": value.Str("[^[:space:]]+"), "FIELDWIDTHS": value.Str(""), "IGNORECASE": value.Num(0), "RT": value.Str(""),
		"BINMODE": value.Num(0), "ERRNO": value.Str(""), "TEXTDOMAIN": value.Str("messages"), "ARGIND": value.Num(0),
	}
	for name, v := range initial {
		if err := in.setGlobal(name, v); err != nil {
			return err
		}
	}
	in.rec.mode = bySeparator
	in.globals[in.slot("PROCINFO")].Array()
	proc := in.globals[in.slot("PROCINFO")].Arr
	for name, v := range map[string]value.Value{
		"version": value.Str("5.2.1"), "FS": value.Str("FS"), "strftime": value.Str("%a %b %e %H:%M:%S %Z %Y"), "platform": value.Str("posix"),
		"uid": value.Num(1000), "gid": value.Num(1000), "euid": value.Num(1000), "egid": value.Num(1000), "pid": value.Num(2), "ppid": value.Num(1), "pgrpid": value.Num(1),
	} {
		proc.Set(name, v)
	}
	env := in.globals[in.slot("ENVIRON")].Array()
	for _, kv := range in.c.Env {
		k, v, _ := strings.Cut(kv, "=")
		env.Set(k, value.Input(v))
	}
	argv := in.globals[in.slot("ARGV")].Array()
	argv.Set("0", value.Str(in.c.Args[0]))
	for i, a := range o.operands {
		argv.Set(fmt.Sprint(i+1), value.Input(a))
	}
	if err := in.setGlobal("ARGC", value.Num(float64(len(o.operands)+1))); err != nil {
		return err
	}
	if o.fs != nil {
		if err := in.setGlobal("FS", value.Str(*o.fs)); err != nil {
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
	return in.setGlobal(name, value.Input(syntax.Unescape(text)))
}

func (in *interp) setGlobal(name string, v value.Value) error {
	slot := in.slot(name)
	return in.setSlot(slot, v)
}

// main runs the whole program.
func (in *interp) main() error {
	for _, s := range in.prog.Begin {
		f, err := in.run(s)
		if err != nil {
			return err
		}
		if f == fExit {
			return in.atEnd()
		}
	}
	if len(in.prog.Rules)+len(in.prog.End)+len(in.prog.BeginFile)+len(in.prog.EndFile) > 0 {
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
	for _, s := range in.prog.End {
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
	for _, r := range in.prog.Rules {
		in.line = r.Line
		match, err := in.selects(r)
		if err != nil {
			return fNormal, err
		}
		if !match {
			continue
		}
		if r.Body == nil {
			if err := in.io.stdout.write(in.rec.Text() + in.ors); err != nil {
				return fNormal, err
			}
			continue
		}
		f, err := in.run(r.Body)
		switch {
		case err != nil || f == fExit || f == fNextFile:
			return f, err
		case f == fNext:
			return fNormal, nil
		}
	}
	return fNormal, nil
}

func (in *interp) selects(r *syntax.Rule) (bool, error) {
	if r.From == nil {
		return true, nil
	}
	if r.To == nil {
		return in.Truth(r.From)
	}
	if !r.Active {
		ok, err := in.Truth(r.From)
		if !ok || err != nil {
			return false, err
		}
	}
	end, err := in.Truth(r.To)
	r.Active = !end
	return true, err
}

func (in *interp) Truth(e syntax.Expr) (bool, error) {
	v, err := in.eval(e)
	return v.Truth(), err
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
		return fmt.Sprintf("cmd. line:%d: (FILENAME=%s FNR=%s) fatal: %v", in.line, in.rec.name, value.Num(in.fnr).Text("%d"), err)
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
