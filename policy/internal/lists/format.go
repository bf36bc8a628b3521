package lists

import (
	"bytes"
	"fmt"
	"slices"
)

// Format is how a list is written. The zero Format is Auto.
type Format uint8

// The formats. All but Rules are lists of names for other programs.
const (
	Auto    Format = iota // what the first line shows
	Rules                 // a rule a line; a plain list of domains is that, too
	Hosts                 // "0.0.0.0 name", see hosts(5)
	Adblock               // "||name^": the name and all below it
	RPZ                   // "name CNAME .": a response policy zone
)

var formatNames = [...]string{Auto: "auto", Rules: "rules", Hosts: "hosts", Adblock: "adblock", RPZ: "rpz"}

// Names lists the formats by name.
func Names() []string { return slices.Clone(formatNames[:]) }

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, bool) {
	i := slices.Index(formatNames[:], s)
	return Format(max(i, 0)), i >= 0
}

// String is the name of the format.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// span is one rule in a text. Of the formats of other programs it is the name.
type span struct {
	start, end int
	bol, line  int  // where its line begins, and its number
	first      bool // it is the first rule of its line
}

// name reports where the name of a rule begins and what of it is covered.
func (f Format) name(data []byte, s span) (at int, scope Scope) {
	switch {
	case f == Hosts:
		return s.start, Apex
	case bytes.HasPrefix(data[s.start:s.end], []byte("*.")):
		return s.start + 2, Below
	case f == Adblock:
		return s.start, Apex | Below
	case f == Rules && s.start < s.end && data[s.start] == '.':
		return s.start + 1, Apex | Below
	}
	return s.start, Apex
}

// text spells a rule as a policy file does.
func (f Format) text(data []byte, s span) string {
	text := string(data[s.start:s.end])
	if f == Adblock && !bytes.HasPrefix(data[s.start:s.end], []byte("*.")) {
		return "." + text
	}
	return text
}

// detect reports the format that the first line with a rule in it shows.
func detect(data []byte) Format {
	for len(data) > 0 {
		var row []byte
		row, data, _ = bytes.Cut(data, []byte{'\n'})
		row = bytes.TrimSpace(row)
		switch {
		case len(row) == 0 || row[0] == '#' || row[0] == ';':
			continue
		case row[0] == '!' || row[0] == '[' && bytes.Contains(bytes.ToLower(row), []byte("adblock")) || bytes.HasPrefix(row, []byte("||")) || bytes.HasPrefix(row, []byte("@@")):
			return Adblock
		case row[0] == '$':
			return RPZ
		}
		row, _, _ = bytes.Cut(row, []byte{'#'})
		fields := bytes.Fields(row)
		switch {
		case len(fields) > 1 && isAddr(fields[0]):
			return Hosts
		case len(fields) > 1 && recordType(fields[1:]) >= 0:
			return RPZ
		}
		return Rules
	}
	return Rules
}
