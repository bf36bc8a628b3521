package screen

import (
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	const off = "\x18\x1b\\"
	for name, tt := range map[string]struct{ output, again, end string }{
		"plain text":     {"hello\r\n\tworld\n", "", ""},
		"attributes":     {"\x1b[8mhidden", "", off + Reset},
		"full screen":    {"\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l", "\x1b[?1h\x1b[?25l\x1b=", off + "\x1b[?1049l\x1b[?1l\x1b[?25h" + Reset},
		"set and unset":  {"\x1b[?1049h\x1b[?2004h\x1b[?2004l\x1b[?1049l", "", off + Reset},
		"many at once":   {"\x1b[?1000;1006h", "\x1b[?1000h\x1b[?1006h", off + "\x1b[?1000l\x1b[?1006l" + Reset},
		"soft reset":     {"\x1b[?1h\x1b[?25l\x1b[?1000h\x1b[!p", "\x1b[?1000h", off + "\x1b[?1000l" + Reset},
		"hard reset":     {"\x1b[?1049h\x1b[>1u\x1bc", "", off + Reset},
		"kitty's keys":   {"\x1b[>1u\x1b[>5u\x1b[=7;1u", "\x1b[=7u", off + "\x1b[<2u" + Reset},
		"keys put back":  {"\x1b[>1u\x1b[<u", "", off + Reset},
		"a title":        {"\x1b]0;title\a", "", off + Reset},
		"a link":         {"\x1b]8;;https://a.test/\x1b\\a\x1b]8;;\x1b\\", "", off + Reset},
		"colours":        {"\x1b]11;#000000\a", "", off + Reset + Palette},
		"all colours":    {"\x1b]4;0;#ffffff\x1b\\", "", off + Reset + Palette},
		"Linux' colours": {"\x1b]P0000000\a", "", off + Reset + Palette},
		"C1 command":     {"\xc2\x9d11;#000000\a", "", off + Reset + Palette},
		"begun":          {"\x1b]0;", "", off + Reset},
		"broken off":     {"\x1b[?10\x1849h\x1b[?10\x1b[?1h", "\x1b[?1h", off + "\x1b[?1l" + Reset},
		"inside a DCS":   {"\x1bP\x1b\\\x1bPq[?1049h\x1b\\", "", off + Reset},
		"very long":      {"\x1b[?" + strings.Repeat("1;", 1000) + "1049h", "\x1b[?1h", off + "\x1b[?1l" + Reset},
	} {
		for size := 1; size <= len(tt.output); size++ {
			if name == "C1 command" && size == 1 {
				continue // cut in two it is not seen
			}
			var m Modes
			for rest := tt.output; rest != ""; {
				n := min(size, len(rest))
				m.Note([]byte(rest[:n]))
				rest = rest[n:]
			}
			if m.Again() != tt.again || m.End() != tt.end || m.Touched() != (tt.end != "") {
				t.Fatalf("%s, %d bytes at a time: again %q, want %q; end %q, want %q", name, size, m.Again(), tt.again, m.End(), tt.end)
			}
		}
	}
}

// What a hostile program writes costs neither memory nor a crash.
func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b]11;x\a\x1b[>1u\x1b[<99999999999999999999u\x1b[<-5u\x1b[=1u"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Modes
		m.Note(b)
		m.Note(b)
		if len(m.sequence) > maxSequence || len(m.keyboard) > maxKeyboard || len(m.Again())+len(m.End()) > 4096 {
			t.Errorf("%d, %d", len(m.sequence), len(m.keyboard))
		}
	})
}
