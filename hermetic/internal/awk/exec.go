package awk

import (
	"errors"
	"fmt"
	"strings"
)

// run runs one statement; an exit or next in a function that it calls is its
// own.
func (in *interp) run(s *stmt) (flow, error) {
	f, err := in.statement(s)
	var j *jump
	if err != nil && errors.As(err, &j) {
		return j.to, nil
	}
	return f, err
}

func (in *interp) statement(s *stmt) (flow, error) {
	if s == nil {
		return fNormal, nil
	}
	if err := in.step(); err != nil {
		return fNormal, err
	}
	if s.line > 0 {
		in.line = s.line
	}
	switch s.kind {
	case sBlock:
		return in.runList(s.list)
	case sExpr:
		_, err := in.eval(s.cond)
		return fNormal, err
	case sPrint, sPrintf:
		return fNormal, in.print(s)
	case sIf:
		ok, err := in.truth(s.cond)
		switch {
		case err != nil:
			return fNormal, err
		case ok:
			return in.run(s.body)
		}
		return in.run(s.alt)
	case sWhile, sDo, sFor:
		return in.loop(s)
	case sForIn:
		return in.forIn(s)
	case sSwitch:
		return in.switchOn(s)
	case sBreak:
		return fBreak, nil
	case sContinue:
		return fContinue, nil
	case sNext:
		return fNext, nil
	case sNextFile:
		return fNextFile, nil
	case sExit:
		return in.exit(s)
	case sReturn:
		in.result = value{}
		if s.cond == nil {
			return fReturn, nil
		}
		v, err := in.eval(s.cond)
		in.result = v
		return fReturn, err
	case sDelete:
		return fNormal, in.delete(s)
	}
	return fNormal, fmt.Errorf("unknown statement %d", s.kind)
}

func (in *interp) runList(list []*stmt) (flow, error) {
	for _, s := range list {
		if f, err := in.run(s); f != fNormal || err != nil {
			return f, err
		}
	}
	return fNormal, nil
}

func (in *interp) exit(s *stmt) (flow, error) {
	if s.cond != nil {
		v, err := in.eval(s.cond)
		if err != nil {
			return fNormal, err
		}
		in.status = int(int64(v.number())) & 0xff
	}
	return fExit, nil
}

func (in *interp) loop(s *stmt) (flow, error) {
	if s.init != nil {
		if _, err := in.run(s.init); err != nil {
			return fNormal, err
		}
	}
	for first := true; ; first = false {
		if s.cond != nil && !(first && s.kind == sDo) {
			ok, err := in.truth(s.cond)
			if !ok || err != nil {
				return fNormal, err
			}
		}
		f, err := in.run(s.body)
		switch {
		case err != nil:
			return fNormal, err
		case f == fBreak:
			return fNormal, nil
		case f != fNormal && f != fContinue:
			return f, nil
		}
		if s.step != nil {
			if _, err := in.run(s.step); err != nil {
				return fNormal, err
			}
		}
		if err := in.step(); err != nil {
			return fNormal, err
		}
	}
}

func (in *interp) forIn(s *stmt) (flow, error) {
	a, err := in.arrayOf(s.array)
	if err != nil {
		return fNormal, err
	}
	keys, err := in.keys(a)
	if err != nil {
		return fNormal, err
	}
	for _, k := range keys {
		if err := in.assignTo(s.args[0], str(k)); err != nil {
			return fNormal, err
		}
		f, err := in.run(s.body)
		switch {
		case err != nil:
			return fNormal, err
		case f == fBreak:
			return fNormal, nil
		case f != fNormal && f != fContinue:
			return f, nil
		}
	}
	return fNormal, nil
}

func (in *interp) switchOn(s *stmt) (flow, error) {
	v, err := in.eval(s.cond)
	if err != nil {
		return fNormal, err
	}
	at := -1
	for i, c := range s.cases {
		if c.value == nil {
			continue
		}
		ok, err := in.caseMatches(v, c.value)
		if err != nil {
			return fNormal, err
		}
		if ok {
			at = i
			break
		}
	}
	for i := 0; at < 0 && i < len(s.cases); i++ {
		if s.cases[i].value == nil {
			at = i
		}
	}
	for i := at; i >= 0 && i < len(s.cases); i++ {
		f, err := in.runList(s.cases[i].body)
		switch {
		case err != nil:
			return fNormal, err
		case f == fBreak:
			return fNormal, nil
		case f != fNormal:
			return f, nil
		}
	}
	return fNormal, nil
}

func (in *interp) caseMatches(v value, e expr) (bool, error) {
	if re, ok := e.(*regexExpr); ok {
		r, err := in.compile(re.src)
		if err != nil {
			return false, err
		}
		return r.Match([]byte(v.text(in.convfmt)))
	}
	w, err := in.eval(e)
	if err != nil {
		return false, err
	}
	return in.compare(v, w) == 0, nil
}

func (in *interp) delete(s *stmt) error {
	a, err := in.arrayOf(s.array)
	if err != nil {
		return err
	}
	if s.args == nil {
		for k := range a.m {
			in.size -= int64(len(k) + cellSize)
		}
		clear(a.m)
		return nil
	}
	key, err := in.key(s.args)
	if err != nil {
		return err
	}
	if _, ok := a.m[key]; ok {
		in.size -= int64(len(key) + cellSize)
		delete(a.m, key)
	}
	return nil
}

// print is print and printf.
func (in *interp) print(s *stmt) error {
	text, err := in.printed(s)
	if err != nil {
		return err
	}
	w := in.io.stdout
	if s.to != "" {
		dest, err := in.eval(s.dest)
		if err != nil {
			return err
		}
		if w, err = in.io.output(s.to, dest.text(in.convfmt)); err != nil {
			return err
		}
	}
	return w.write(text)
}

func (in *interp) printed(s *stmt) (string, error) {
	if len(s.args) == 0 {
		return in.rec.text() + in.ors, nil
	}
	values := make([]value, len(s.args))
	for i, e := range s.args {
		v, err := in.eval(e)
		if err != nil {
			return "", err
		}
		values[i] = v
	}
	if s.kind == sPrintf {
		return sprintf(values[0].text(in.convfmt), values[1:], int(min(in.c.Budget.Limits.String, maxWidth)))
	}
	if len(values) == 1 {
		return values[0].text(in.ofmt) + in.ors, nil
	}
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(in.ofs)
		}
		b.WriteString(v.text(in.ofmt))
	}
	b.WriteString(in.ors)
	return b.String(), nil
}
