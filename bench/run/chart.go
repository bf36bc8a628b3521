package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Sizes of a chart, in pixels.
const (
	chartWidth  = 760
	labelWidth  = 210
	valueWidth  = 90
	rowHeight   = 18
	groupHeight = 30
	plotHeight  = 260
)

// ours is the color of egressd, theirs that of all others.
const (
	ours   = "#0a7a4b"
	theirs = "#8a94a6"
	ink    = "#3b4252"
)

// group is one measurement's bars.
type group struct {
	label string
	bars  []bar
}

type bar struct {
	name  string
	value float64
}

// bars draws groups of horizontal bars, each group on a scale of its own.
func bars(title, unit string, groups []group) string {
	var b strings.Builder
	y := 34
	for _, g := range groups {
		y += groupHeight
		most := 0.0
		for _, x := range g.bars {
			most = max(most, x.value)
		}
		fmt.Fprintf(&b, `<text x="8" y="%d" font-weight="bold">%s</text>`+"\n", y-10, html.EscapeString(g.label))
		for _, x := range g.bars {
			w := int(float64(chartWidth-labelWidth-valueWidth) * x.value / max(most, 1e-9))
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
				labelWidth-8, y+12, html.EscapeString(x.name), labelWidth, y+1, max(w, 1), rowHeight-4, color(x.name), labelWidth+w+6, y+12, number(x.value))
			y += rowHeight
		}
	}
	return svg(title+", "+unit, y+12, b.String())
}

func color(name string) string {
	if name == "egressd" || name == "launch" {
		return ours
	}
	return theirs
}

// number has three digits that say something.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// series is one line of a curve.
type series struct {
	name   string
	points [][2]float64 // by x
}

// curves draws lines over a logarithmic x axis, with y from zero.
func curves(title, unit string, all []series) string {
	const left, right, top = 60, 150, 50
	var xs []float64
	most := 0.0
	for _, s := range all {
		for _, p := range s.points {
			xs, most = append(xs, p[0]), max(most, p[1])
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	if len(xs) == 0 {
		return ""
	}
	low, high := math.Log10(xs[0]), math.Log10(xs[len(xs)-1])
	x := func(v float64) float64 {
		return left + (chartWidth-left-right)*(math.Log10(v)-low)/max(high-low, 1e-9)
	}
	y := func(v float64) float64 { return top + plotHeight*(1-v/max(most*1.05, 1e-9)) }
	var b strings.Builder
	for _, v := range xs {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%[1]f" y1="%d" y2="%d" stroke="#d8dee9"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x(v), top, top+plotHeight, x(v), top+plotHeight+16, thousands(v))
	}
	for _, part := range []float64{0, 0.5, 1} {
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, y(most*part)+4, number(most*part))
	}
	for _, s := range all {
		var at []string
		for _, p := range s.points {
			at = append(at, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(p[0]), y(p[1]), color(s.name))
		}
		last := s.points[len(s.points)-1]
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%.1f" y="%.1f">%s</text>`+"\n",
			strings.Join(at, " "), color(s.name), x(last[0])+8, y(last[1])+4, html.EscapeString(s.name))
	}
	return svg(title+", "+unit, top+plotHeight+30, b.String())
}

func thousands(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}

// svg frames a drawing.
func svg(title string, height int, body string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="12" fill="%[3]s" role="img">
<title>%[4]s</title>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<text x="8" y="22" font-size="15" font-weight="bold">%[4]s</text>
%[5]s</svg>
`, chartWidth, height, ink, html.EscapeString(title), body)
}
