package shell

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// selectLoop is select: the menu goes to the standard error.
func (sh *shell) selectLoop(c *syntax.ForClause, name string, items []string) {
	sh.status = 0
	if len(items) == 0 {
		return
	}
	menu := true
	for {
		if menu {
			sh.errText(selectMenu(items))
		}
		ps3 := "#? "
		if sh.isSet("PS3") {
			ps3 = sh.prompt(sh.get("PS3"))
		}
		sh.errText(ps3)
		line, _, status := sh.readLine(readOptions{delim: '\n', count: -1})
		if status != 0 {
			sh.out("\n")
			sh.status = 1
			return
		}
		reply := string(line)
		sh.setString("REPLY", reply)
		if reply == "" {
			menu = true
			continue
		}
		menu = false
		val := ""
		if n, ok := integer(reply); ok && n >= 1 && n <= int64(len(items)) {
			val = items[n-1]
		}
		sh.setString(name, val)
		if !sh.turn(c.Do) {
			return
		}
		menu = sh.get("REPLY") == ""
	}
}

// selectMenu lays the items out in columns of a line of 80.
func selectMenu(items []string) string {
	width := 0
	for _, it := range items {
		width = max(width, charCount(it))
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
				cell += strings.Repeat(" ", column-charCount(cell))
			}
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
