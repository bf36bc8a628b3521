package shell

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/builtin"
	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
)

// selectLoop is select. The menu is written to the standard error.
func selectLoop(sh *state.Shell, c *syntax.ForClause, name string, items []string) {
	sh.Status = 0
	if len(items) == 0 {
		return
	}
	menu := true
	for {
		if menu {
			sh.ErrText(selectMenu(items))
		}
		ps3 := "#? "
		if sh.Vars.IsSet("PS3") {
			ps3 = expand.Prompt(sh, sh.Vars.Get("PS3"))
		}
		sh.ErrText(ps3)
		reply, ok := builtin.ReadReply(sh)
		if !ok {
			sh.Out("\n")
			sh.Status = 1
			return
		}
		sh.Vars.Set("REPLY", reply)
		if reply == "" {
			menu = true
			continue
		}
		menu = false
		val := ""
		if n, ok := number.Parse(reply); ok && n >= 1 && n <= int64(len(items)) {
			val = items[n-1]
		}
		sh.Vars.Set(name, val)
		if !turn(sh, c.Do) {
			return
		}
		menu = sh.Vars.Get("REPLY") == ""
	}
}

// selectMenu arranges the items in columns, for lines of 80 characters.
func selectMenu(items []string) string {
	width := 0
	for _, it := range items {
		width = max(width, chars.Count(it))
	}
	digits := len(strconv.Itoa(len(items)))
	column := width + digits + 2 + 2
	cols := max(80/column, 1)
	rows := (len(items) + cols - 1) / cols
	cols = (len(items) + rows - 1) / rows
	if rows == 1 {
		rows, cols = cols, 1
	}
	var b strings.Builder
	for r := range rows {
		for c := range cols {
			i := c*rows + r
			if i >= len(items) {
				continue
			}
			cell := fmt.Sprintf("%*d) %s", digits, i+1, items[i])
			if i+rows < len(items) {
				cell += strings.Repeat(" ", column-chars.Count(cell))
			}
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
