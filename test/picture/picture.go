// Package picture draws what a terminal showed as an SVG, and reads its words back, so that
// a test can tell whether the picture still says what the programs print:
//
//	svg := picture.Draw("launch", 100, "$ launch -- true\n\x1b[31mblocked\x1b[0m\n")
//	lines, err := picture.Words(svg)
package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// Sizes of the drawing, in pixels of the SVG's own scale.
const (
	charWidth  = 8.4
	lineHeight = 20
	margin     = 18
	barHeight  = 34
	fontSize   = 14
)

const ink, paper, bar = "#d8dee9", "#1b2129", "#2b333e"

// colours are those of SGR that programs here use.
var colours = map[string]string{"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "36": "#79c0ff", "2": "#8b949e", "90": "#8b949e"}

// span is text of one colour; "" is ink.
type span struct{ text, colour string }

// control is a sequence that moves no text of ours: CSI, OSC, and escapes of one or two characters.
var control = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)|\x1b[ -/]*[0-~]")

var graphics = regexp.MustCompile("^\x1b\\[([0-9;]*)m$")

// lines splits what a terminal got into lines of spans, wrapped at columns. A line that begins
// with "$ " is a command, and brighter. Cursor movements are ignored: what draws full screens
// gives no sensible picture.
func lines(screen string, columns int) [][]span {
	var all [][]span
	colour := ""
	for text := range strings.Lines(strings.ReplaceAll(screen, "\r\n", "\n")) {
		text = strings.TrimSuffix(text, "\n")
		var row []span
		width := 0
		put := func(part string) {
			for _, r := range part {
				if unicode.IsControl(r) {
					continue
				}
				if width == columns {
					all, row, width = append(all, row), nil, 0
				}
				if n := len(row); n == 0 || row[n-1].colour != colour {
					row = append(row, span{colour: colour})
				}
				row[len(row)-1].text += string(r)
				width++
			}
		}
		at := 0
		for _, m := range control.FindAllStringIndex(text, -1) {
			put(text[at:m[0]])
			at = m[1]
			if g := graphics.FindStringSubmatch(text[m[0]:m[1]]); g != nil {
				colour = ""
				for _, code := range strings.Split(g[1], ";") {
					if c := colours[code]; c != "" {
						colour = c
					}
				}
			}
		}
		put(text[at:])
		all = append(all, row)
	}
	return all
}

// Draw draws what was shown on a screen of so many columns. The drawing holds no script, no font and no address.
func Draw(title string, columns int, screen string) []byte {
	rows := lines(screen, columns)
	width := int(charWidth*float64(columns)) + 2*margin
	height := barHeight + margin + lineHeight*len(rows) + margin/2
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%[3]d" fill="%[4]s" role="img">
<title>%[5]s</title>
<rect width="100%%" height="100%%" rx="8" fill="%[6]s"/>
<path d="M0 8a8 8 0 0 1 8-8h%[7]da8 8 0 0 1 8 8v%[8]dH0z" fill="%[9]s"/>
<circle cx="20" cy="17" r="6" fill="#ff5f57"/><circle cx="40" cy="17" r="6" fill="#febc2e"/><circle cx="60" cy="17" r="6" fill="#28c840"/>
`, width, height, fontSize, ink, html.EscapeString(title), paper, width-16, barHeight-8, bar)
	for i, row := range rows {
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve"`, margin, barHeight+margin+lineHeight*i+lineHeight/2)
		if len(row) > 0 && strings.HasPrefix(row[0].text, "$ ") {
			b.WriteString(` font-weight="bold" fill="#ffffff"`)
		}
		b.WriteString(">")
		for _, s := range row {
			if s.colour == "" {
				b.WriteString(html.EscapeString(s.text))
				continue
			}
			fmt.Fprintf(&b, `<tspan fill="%s">%s</tspan>`, s.colour, html.EscapeString(s.text))
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

var (
	digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	plural = regexp.MustCompile(`\b0 (flow|time)s\b`)
	named  = regexp.MustCompile(`launch logs [a-z0-9]+`) // a run has a name of its own
)

// Words reads the lines of a drawing, or of what a terminal showed after Draw: blanks run together, empty lines
// left out, and 0 for every number, of flows and bytes above all, since they differ between two runs.
func Words(svg []byte) ([]string, error) {
	var all []string
	in := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("no drawing: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Local == "text" {
				all, in = append(all, ""), true
			}
		case xml.EndElement:
			if t.Name.Local == "text" {
				in = false
				text := named.ReplaceAllString(all[len(all)-1], "launch logs RUN")
				last := strings.Join(strings.Fields(plural.ReplaceAllString(digits.ReplaceAllString(text, "0"), "0 $1")), " ")
				if all = all[:len(all)-1]; last != "" {
					all = append(all, last)
				}
			}
		case xml.CharData:
			if in {
				all[len(all)-1] += string(t)
			}
		}
	}
}
