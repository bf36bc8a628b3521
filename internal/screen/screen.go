// Package screen knows the control sequences by which launch gets a terminal back
// that a program has written to:
//
//	var modes screen.Modes
//	modes.Note(output) // everything that the program wrote, on its way
//	io.WriteString(tty, screen.Reset)
//	... launch's own words ...
//	io.WriteString(tty, modes.Again()) // the program goes on
//
// or, when the program is gone, modes.End().
//
// The sequences are those of ECMA-48, the DEC VT510 and xterm.
package screen

// Reset makes what is written next visible, wherever the program left the terminal.
//
// Threat: a program leaves the terminal so that launch's words are not seen, or look
// different: in the middle of a sequence, hidden or in the colour of the background
// (SGR 8, 30), in another character set, outside the scroll region or the margins,
// written over one another (no wrap, insert mode), held back (synchronized output),
// or above text that seems to belong to them -> CAN and ST end what was begun; then
// the soft reset, and each of these by itself where a terminal has no soft reset;
// what stands below is erased. Keys are sent as on a plain terminal again: no mouse,
// no pasting brackets, no other encoding. Left over: colours (see Palette), a window
// made tiny, a font that nobody can read.
const Reset = "\x18\x1b\\" + // CAN, ST
	"\x1b[?2026l" + // synchronized output
	"\x1b[!p" + // DECSTR
	"\x1b(B\x1b)B\x0f" + // US-ASCII in G0 and G1, G0 in use
	"\x1b[4l\x1b[20l" + // insert, new line mode
	"\x1b[?69l\x1b[?6l\x1b7\x1b[r\x1b8" + // margins, origin, scroll region; the cursor stays
	"\x1b[?5l\x1b[?7h\x1b[?25h" + // reverse video, wrap, cursor
	"\x1b[?1l\x1b>" + // cursor keys and keypad as usual
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?2004l" + // mouse, focus, pasting
	"\x1b[>4m\x1b[=0u" + // xterm's and kitty's ways to send keys
	"\x1b[0m" + // attributes, also where the line before the last is taken for SGR 4
	"\x1b[J" // what is below

// Palette resets the colours that sequences can change: all, text, background, cursor.
const Palette = "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\"
