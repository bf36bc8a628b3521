package cli

import "fmt"

// Paint colours words on a terminal. The zero Paint leaves them as they are.
type Paint struct{ On bool }

// Good colours what is as it should be.
func (p Paint) Good(s string) string { return p.in("32", s) }

// Bad colours what is not.
func (p Paint) Bad(s string) string { return p.in("31", s) }

// Warn colours what a person should look at.
func (p Paint) Warn(s string) string { return p.in("33", s) }

// Faint colours what hardly matters.
func (p Paint) Faint(s string) string { return p.in("2", s) }

func (p Paint) in(code, s string) string {
	if !p.On {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// ColorMode is the value of --color. The zero ColorMode is auto: on a terminal, unless
// NO_COLOR is set. It is a flag.Value.
type ColorMode string

// Set implements flag.Value.
func (m *ColorMode) Set(s string) error {
	if s != "auto" && s != "always" && s != "never" {
		return fmt.Errorf("%q: auto, always or never", s)
	}
	*m = ColorMode(s)
	return nil
}

// String implements flag.Value.
func (m *ColorMode) String() string { return string(*m) }

// Paint reports how to colour a stream, which may be a terminal.
func (p *Program) Paint(m ColorMode, terminal bool) Paint {
	switch m {
	case "always":
		return Paint{On: true}
	case "never":
		return Paint{}
	}
	return Paint{On: terminal && p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb"}
}
