package awk

import (
	"errors"
	"fmt"
	"strings"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// run runs one statement; an exit or next in a function that it calls is its
// own.
func (in *interp) run(s *syntax.Stmt) (flow, error) {
	f, err := in.statement(s)
	var j *jump
	if err != nil && errors.As(err, &j) {
		return j.to, nil
	}
	return f, err
}

func (in *interp) statement(s *syntax.Stmt) (flow, error) {
	if s == nil {
		return fNormal, nil
	}
	if err := in.step(); err != nil {
		return fNormal, err
	}
	if s.Line > 0 {
		in.line = s.Line
	}
	switch s.Kind {
	case syntax.SBlock:
		return in.runList(s.List)
	case syntax.SExpr:
		_, err := in.eval(s.Cond)
		return fNormal, err
	case syntax.SPrint, syntax.SPrintf:
		return fNormal, in.print(s)
	case syntax.SIf:
		ok, err := in.Truth(s.Cond)
		switch {
		case err != nil:
			return fNormal, err
		case ok:
			return in.run(s.Body)
		}
		return in.run(s.Alt)
	case syntax.SWhile, syntax.SDo, syntax.SFor:
		return in.loop(s)
	case syntax.SForIn:
		return in.forIn(s)
	case syntax.SSwitch:
		return in.switchOn(s)
	case syntax.SBreak:
		return fBreak, nil
	case syntax.SContinue:
		return fContinue, nil
	case syntax.SNext:
		return fNext, nil
	case syntax.SNextFile:
		return fNextFile, nil
	case syntax.SExit:
		return in.exit(s)
	case syntax.SReturn:
		in.result = value.Value{}
		if s.Cond == nil {
			return fReturn, nil
		}
		v, err := in.eval(s.Cond)
		in.result = v
		return fReturn, err
	case syntax.SDelete:
		return fNormal, in.delete(s)
	}
	return fNormal, fmt.Errorf("unknown statement %d", s.Kind)
}

func (in *interp) runList(list []*syntax.Stmt) (flow, error) {
	for _, s := range list {
		if f, err := in.run(s); f != fNormal || err != nil {
			return f, err
		}
	}
	return fNormal, nil
}

func (in *interp) exit(s *syntax.Stmt) (flow, error) {
	if s.Cond != nil {
		v, err := in.eval(s.Cond)
		if err != nil {
			return fNormal, err
		}
		in.status = int(int64(v.Number())) & 0xff
	}
	return fExit, nil
}

func (in *interp) loop(s *syntax.Stmt) (flow, error) {
	if s.Init != nil {
		if _, err := in.run(s.Init); err != nil {
			return fNormal, err
		}
	}
	for first := true; ; first = false {
		if s.Cond != nil && !(first && s.Kind == syntax.SDo) {
			ok, err := in.Truth(s.Cond)
			if !ok || err != nil {
				return fNormal, err
			}
		}
		f, err := in.run(s.Body)
		switch {
		case err != nil:
			return fNormal, err
		case f == fBreak:
			return fNormal, nil
		case f != fNormal && f != fContinue:
			return f, nil
		}
		if s.Step != nil {
			if _, err := in.run(s.Step); err != nil {
				return fNormal, err
			}
		}
		if err := in.step(); err != nil {
			return fNormal, err
		}
	}
}

func (in *interp) forIn(s *syntax.Stmt) (flow, error) {
	a, err := in.arrayOf(s.Array)
	if err != nil {
		return fNormal, err
	}
	keys, err := in.keys(a)
	if err != nil {
		return fNormal, err
	}
	for _, k := range keys {
		if err := in.assignTo(s.Args[0], value.Str(k)); err != nil {
			return fNormal, err
		}
		f, err := in.run(s.Body)
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

func (in *interp) switchOn(s *syntax.Stmt) (flow, error) {
	v, err := in.eval(s.Cond)
	if err != nil {
		return fNormal, err
	}
	at := -1
	for i, c := range s.Cases {
		if c.Value == nil {
			continue
		}
		ok, err := in.caseMatches(v, c.Value)
		if err != nil {
			return fNormal, err
		}
		if ok {
			at = i
			break
		}
	}
	for i := 0; at < 0 && i < len(s.Cases); i++ {
		if s.Cases[i].Value == nil {
			at = i
		}
	}
	for i := at; i >= 0 && i < len(s.Cases); i++ {
		f, err := in.runList(s.Cases[i].Body)
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

func (in *interp) caseMatches(v value.Value, e syntax.Expr) (bool, error) {
	if re, ok := e.(*syntax.RegexExpr); ok {
		r, err := in.compile(re.Src)
		if err != nil {
			return false, err
		}
		return r.Match([]byte(v.Text(in.convfmt)))
	}
	w, err := in.eval(e)
	if err != nil {
		return false, err
	}
	return in.compare(v, w) == 0, nil
}

func (in *interp) delete(s *syntax.Stmt) error {
	a, err := in.arrayOf(s.Array)
	if err != nil {
		return err
	}
	if s.Args == nil {
		for k := range a.M {
			in.size -= int64(len(k) + cellSize)
		}
		clear(a.M)
		return nil
	}
	key, err := in.key(s.Args)
	if err != nil {
		return err
	}
	if _, ok := a.M[key]; ok {
		in.size -= int64(len(key) + cellSize)
		delete(a.M, key)
	}
	return nil
}

// print is print and printf.
func (in *interp) print(s *syntax.Stmt) error {
	text, err := in.printed(s)
	if err != nil {
		return err
	}
	w := in.io.stdout
	if s.To != "" {
		dest, err := in.eval(s.Dest)
		if err != nil {
			return err
		}
		if w, err = in.io.output(s.To, dest.Text(in.convfmt)); err != nil {
			return err
		}
	}
	return w.write(text)
}

func (in *interp) printed(s *syntax.Stmt) (string, error) {
	if len(s.Args) == 0 {
		return in.rec.Text() + in.ors, nil
	}
	values := make([]value.Value, len(s.Args))
	for i, e := range s.Args {
		v, err := in.eval(e)
		if err != nil {
			return "", err
		}
		values[i] = v
	}
	if s.Kind == syntax.SPrintf {
		return value.Sprintf(values[0].Text(in.convfmt), values[1:], int(min(in.c.Budget.Limits.String, value.MaxWidth)))
	}
	if len(values) == 1 {
		return values[0].Text(in.ofmt) + in.ors, nil
	}
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(in.ofs)
		}
		b.WriteString(v.Text(in.ofmt))
	}
	b.WriteString(in.ors)
	return b.String(), nil
}
