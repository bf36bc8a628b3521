package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/when"
)

// cal prints months as util-linux's cal does, without marking today.
func cal(w *gnu.Work) {
	sets, operands, ok := w.Options("[options] [[[day] month] year]", "1,one 3,three n,months: S,span s,sunday m,monday j,julian y,year Y,twelve h N b w,week:: v,vertical A: B: C M")
	if !ok {
		return
	}
	now := w.Now().In(when.Zone(w.Getenv("TZ")))
	k := &calCall{Work: w, first: time.Sunday, months: 1, at: time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)}
	if !k.operands(operands) {
		return
	}
	for _, s := range sets {
		if !k.option(s) {
			return
		}
	}
	k.print()
}

type calCall struct {
	*gnu.Work
	first  time.Weekday
	at     time.Time
	months int
	year   bool
}

func (k *calCall) option(s command.Set) bool {
	switch s.Name {
	case "three":
		k.at, k.months = k.at.AddDate(0, -1, 0), 3
	case "months":
		n, err := strconv.Atoi(s.Value)
		if err != nil || n < 1 || n > 1200 {
			k.Die(1, "invalid month argument: %s", gnu.Quote(s.Value))
			return false
		}
		k.months = n
	case "monday":
		k.first = time.Monday
	case "year":
		k.at, k.months, k.year = time.Date(k.at.Year(), 1, 1, 0, 0, 0, 0, time.UTC), 12, true
	case "twelve":
		k.months = 12
	case "one", "sunday", "h":
	default:
		k.Refuse(s.Name)
		return false
	}
	return true
}

func (k *calCall) operands(o []string) bool {
	if len(o) > 3 {
		k.TryHelp("bad usage")
		return false
	}
	if len(o) == 3 {
		o = o[1:]
	}
	if len(o) == 0 {
		return true
	}
	y, err := strconv.Atoi(o[len(o)-1])
	if err != nil || y < 1 || y > 9999 {
		k.Die(1, "illegal year value: use positive integer")
		return false
	}
	m := 1
	if len(o) == 2 {
		m, err = strconv.Atoi(o[0])
		if err != nil {
			m = 0
			for i := time.January; i <= time.December; i++ {
				if len(o[0]) >= 3 && strings.HasPrefix(strings.ToLower(i.String()), strings.ToLower(o[0])) {
					m = int(i)
				}
			}
		}
		if m < 1 || m > 12 {
			k.Die(1, "illegal month value: use 1-12")
			return false
		}
	} else {
		k.months, k.year = 12, true
	}
	k.at = time.Date(y, time.Month(m), 1, 0, 0, 0, 0, time.UTC)
	return true
}

// width is how wide one month is.
const calWidth = 20

func center(s string, width int) string {
	gap := max(0, width-len(s))
	return strings.Repeat(" ", gap/2) + s + strings.Repeat(" ", gap-gap/2)
}

func (k *calCall) print() {
	if k.year {
		fmt.Fprintf(k.Out, "%s\n\n", strings.TrimRight(center(strconv.Itoa(k.at.Year()), 3*calWidth+6), ""))
	}
	for from := 0; from < k.months && k.Ctx.Err() == nil; from += 3 {
		var blocks [][]string
		for i := from; i < min(from+3, k.months); i++ {
			blocks = append(blocks, k.month(k.at.AddDate(0, i, 0)))
		}
		for line := range 8 {
			var parts []string
			for _, b := range blocks {
				parts = append(parts, b[line])
			}
			sep := "  "
			if k.year {
				sep = "   "
			}
			fmt.Fprintln(k.Out, strings.Join(parts, sep))
		}
	}
}

// month is a title, the names of the days, and six weeks.
func (k *calCall) month(t time.Time) []string {
	title := fmt.Sprintf("%s %d", t.Month(), t.Year())
	if k.year {
		title = t.Month().String()
	}
	names := make([]string, 7)
	for i := range names {
		names[i] = ((k.first + time.Weekday(i)) % 7).String()[:2]
	}
	lines := []string{center(title, calWidth), strings.Join(names, " ")}
	skip := int(t.Weekday()-k.first+7) % 7
	last := t.AddDate(0, 1, -1).Day()
	for day := 1 - skip; len(lines) < 8; day += 7 {
		var cells []string
		for d := day; d < day+7; d++ {
			if d < 1 || d > last {
				cells = append(cells, "  ")
			} else {
				cells = append(cells, fmt.Sprintf("%2d", d))
			}
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return lines
}
