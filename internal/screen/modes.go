package screen

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is remembered.
const (
	maxSequence = 64 // bytes of a sequence that are looked at
	maxKeyboard = 16 // kitty's stack of ways to send keys
)

// kept are the private modes that Reset changes or that outlast a program, and
// whether a terminal starts with them. In this order they are set again: the
// alternate screen first.
var kept = [...]struct {
	number int
	on     bool
}{
	{47, false},
	{1047, false},
	{1049, false}, // the alternate screen
	{1, false},
	{5, false},
	{6, false},
	{7, true},
	{25, true},
	{69, false},
	{9, false},
	{1000, false},
	{1002, false},
	{1003, false},
	{1004, false},
	{1005, false},
	{1006, false},
	{1015, false},
	{1016, false},
	{2004, false},
	{2031, false},
	{2048, false},
}

// Modes follows what a program's output makes of a terminal. The zero value is a
// terminal as it was found. Not safe for concurrent use.
//
// It reads as most terminals do. A program may deceive it; then modes stay as the
// program left them that no words of launch are hidden by.
type Modes struct {
	touched bool // something but plain text was written
	palette bool // colours may have been changed

	state    state
	sequence []byte          // of the sequence that is being read
	changed  [len(kept)]bool // other than at the start
	keypad   bool            // sends its own sequences
	keyboard []int           // kitty's flags, innermost last
}

// state says where in a sequence the output stands.
type state uint8

const (
	text state = iota
	escape
	control // CSI
	command // OSC
	other   // DCS, SOS, PM or APC: skipped to its end
	commandEscape
	otherEscape
)

// Touched reports whether anything but plain text was written.
func (m *Modes) Touched() bool { return m.touched }

// Note follows output, of which sequences may be cut anywhere.
func (m *Modes) Note(output []byte) {
	if !m.touched {
		at := bytes.IndexFunc(output, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r >= 0x7f })
		if at < 0 {
			return
		}
		m.touched = true
	}
	m.palette = m.palette || bytes.Contains(output, []byte("\xc2\x9d")) // OSC as one character
	for i := 0; i < len(output); i++ {
		if m.state == text {
			next := bytes.IndexByte(output[i:], 0x1b)
			if next < 0 {
				return
			}
			i += next
		}
		m.byte(output[i])
	}
}

func (m *Modes) byte(b byte) {
	switch m.state {
	case text:
		if b == 0x1b {
			m.state = escape
		}
		return
	case commandEscape, otherEscape:
		if b == '\\' { // ST
			m.end(m.state == commandEscape)
			return
		}
		m.end(m.state == commandEscape)
		m.state = escape
	}
	switch {
	case b == 0x18 || b == 0x1a: // CAN, SUB
		m.end(m.state == command)
	case b == 0x1b && m.state == command:
		m.state = commandEscape
	case b == 0x1b && m.state == other:
		m.state = otherEscape
	case b == 0x1b:
		m.sequence, m.state = m.sequence[:0], escape
	case m.state == escape:
		m.begin(b)
	case m.state == control && b >= 0x40 && b <= 0x7e:
		m.private(b)
		m.sequence, m.state = m.sequence[:0], text
	case m.state == command && b == '\a':
		m.end(true)
	case m.state != other && b >= ' ' && len(m.sequence) < maxSequence:
		m.sequence = append(m.sequence, b)
	}
}

// begin is the byte after ESC.
func (m *Modes) begin(b byte) {
	m.sequence, m.state = m.sequence[:0], text
	switch b {
	case '[':
		m.state = control
	case ']':
		m.state = command
	case 'P', 'X', '^', '_':
		m.state = other
	case '=', '>':
		m.keypad = b == '='
	case 'c': // RIS
		m.changed, m.keypad, m.keyboard = [len(kept)]bool{}, false, nil
	}
}

// harmless are the commands (OSC) that change no colour: titles, places, links,
// the clipboard, marks of prompts.
var harmless = [...]string{"0", "1", "2", "7", "8", "9", "52", "133", "633", "777", "1337"}

// end is the end of a sequence with a text: a command (OSC), or another.
func (m *Modes) end(isCommand bool) {
	if isCommand {
		number, _, _ := strings.Cut(string(m.sequence), ";")
		m.palette = m.palette || !slices.Contains(harmless[:], number)
	}
	m.sequence, m.state = m.sequence[:0], text
}

// private is the last byte of a control sequence.
func (m *Modes) private(final byte) {
	s := string(m.sequence)
	switch {
	case strings.HasPrefix(s, "?") && (final == 'h' || final == 'l'):
		for p := range strings.SplitSeq(s[1:], ";") {
			n, _ := strconv.Atoi(p)
			for i, k := range kept {
				if k.number == n {
					m.changed[i] = (final == 'h') != k.on
				}
			}
		}
	case final == 'p' && s == "!": // DECSTR
		for i, k := range kept {
			if k.number < 47 || k.number == 69 {
				m.changed[i] = false
			}
		}
		m.keypad = false
	case final == 'u' && s != "":
		m.keys(s[0], s[1:])
	}
}

// keys follows kitty's ways to send keys: > puts flags on a stack, < takes some
// off, = changes the topmost.
func (m *Modes) keys(how byte, rest string) {
	first, _, _ := strings.Cut(rest, ";")
	n, err := strconv.Atoi(first)
	switch how {
	case '>':
		m.keyboard = append(m.keyboard, n)
		m.keyboard = m.keyboard[max(0, len(m.keyboard)-maxKeyboard):]
	case '<':
		if err != nil {
			n = 1
		}
		m.keyboard = m.keyboard[:max(0, len(m.keyboard)-max(n, 0))]
	case '=':
		if len(m.keyboard) == 0 {
			m.keyboard = append(m.keyboard, 0)
		}
		m.keyboard[len(m.keyboard)-1] = n
	}
}

// Again sets the modes that Reset has changed as the program had them. What it drew
// is the program's to draw again.
func (m *Modes) Again() string {
	var b strings.Builder
	for i, k := range kept[3:] { // Reset leaves the alternate screen alone
		if m.changed[i+3] {
			b.WriteString(set(k.number, !k.on))
		}
	}
	if m.keypad {
		b.WriteString("\x1b=")
	}
	if n := len(m.keyboard); n > 0 {
		fmt.Fprintf(&b, "\x1b[=%du", m.keyboard[n-1])
	}
	return b.String()
}

// Colours is Palette, if a program may have changed colours.
func (m *Modes) Colours() string {
	if m.palette {
		return Palette
	}
	return ""
}

// End makes the terminal what it was before the program, "" if it still is.
func (m *Modes) End() string {
	if !m.touched {
		return ""
	}
	var b strings.Builder
	b.WriteString("\x18\x1b\\") // as in Reset
	if n := len(m.keyboard); n > 0 {
		fmt.Fprintf(&b, "\x1b[<%du", n)
	}
	for i, k := range kept {
		if m.changed[i] {
			b.WriteString(set(k.number, k.on))
		}
	}
	return b.String() + Reset + m.Colours()
}

func set(mode int, on bool) string {
	if on {
		return "\x1b[?" + strconv.Itoa(mode) + "h"
	}
	return "\x1b[?" + strconv.Itoa(mode) + "l"
}
