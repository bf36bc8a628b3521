package docs

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// command is one complete command of a block, as a reader types it.
type command struct {
	text       string
	line       int // within the block, from 0
	exits      int
	background bool
}

var (
	exitsWith  = regexp.MustCompile(`#.*\bexits ([1-9][0-9]*)\b`)
	background = regexp.MustCompile(`[^&>]& *(#.*)?$`)
)

// commands splits a block the way a shell reads it. An unfinished command, and
// a block without any, are errors.
func commands(text string) ([]command, error) {
	var out []command
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == "" {
			continue
		}
		end, why := i, ""
		for why = unfinished(lines[i]); why != "" && end+1 < len(lines); {
			end++
			why = unfinished(strings.Join(lines[i:end+1], "\n"))
		}
		if why != "" {
			return nil, fmt.Errorf("line %d: no complete command: %s", i+1, why)
		}
		c := command{text: strings.Join(lines[i:end+1], "\n"), line: i}
		if m := exitsWith.FindStringSubmatch(c.text); m != nil {
			c.exits, _ = strconv.Atoi(m[1]) // digits
		}
		c.background = background.MatchString(c.text)
		out = append(out, c)
		i = end
	}
	if len(out) == 0 {
		return nil, errors.New("a block without commands")
	}
	return out, nil
}

// unfinished asks bash what is wrong with text so far; "" when it is complete.
func unfinished(text string) string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.HasPrefix(strings.TrimSpace(last), "#") || strings.HasSuffix(last, `\`) {
		return "it goes on"
	}
	cmd := exec.Command("bash", "--norc", "-n", "-c", text)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		return errs.String() + fmt.Sprint(err)
	}
	return ""
}
