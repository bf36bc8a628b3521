package main

import (
	"bytes"
	"os"
	"path/filepath"
)

// terminals attack the person's terminal.
func terminals() []attack {
	const group = "terminal"
	list := []attack{
		{
			name: "TIOCSTI: keys pushed into the shell", script: "{A} tiocsti 'echo pushed >{BASE}/pushed\n'; sleep 0.3",
			terminal: func(a *attempt, t *terminal) {
				defer t.shell()()
				t.enter(a.command + "\n")
				t.await("BEGIN")
				t.await("ready> ")
				t.pause()
			},
			check: func(a *attempt) bool { _, err := os.Stat(filepath.Join(a.base, "pushed")); return err == nil },
		},
		{
			name:     "keys read after Ctrl-Z, by a child that left the session",
			script:   "exec 3<&0; setsid sh -c 'echo READY; cat <&3 >{WS}/stolen' & wait; sleep 20",
			terminal: typeAway(true), check: stolen,
		},
		{
			name:     "keys read in the background, all streams redirected",
			script:   "exec 3</dev/tty; setsid cat <&3 >{WS}/stolen & sleep 20",
			terminal: typeAway(false), check: stolen,
		},
		{
			name:   "/dev/tty written, all streams redirected",
			script: "echo {MARK} >/dev/tty; sleep 0.2",
			terminal: func(a *attempt, t *terminal) {
				defer t.shell()()
				t.enter(a.command + " </dev/null >" + a.base + "/log 2>&1\n")
				t.await("ready> ")
			},
			check: func(a *attempt) bool { return bytes.Contains(a.screen, []byte(a.mark+"\r\n")) },
		},
		{
			name: "modes left changed (no echo)", script: "stty raw -echo",
			terminal: func(a *attempt, t *terminal) { t.direct(); a.outside = !t.echoes() },
			check:    seen,
		},
		{
			name: "attributes left changed: what follows is hidden", script: "printf '\\033[8m\\033[?1049h'; sleep 0.2",
			terminal: func(a *attempt, t *terminal) { t.direct() },
			check: func(a *attempt) bool {
				_, after, found := bytes.Cut(a.screen, []byte("\x1b[8m"))
				return found && !bytes.Contains(after, []byte("\x1b[0m")) && !bytes.Contains(after, []byte("\x1b[m")) && !bytes.Contains(after, []byte("\x1b[!p"))
			},
		},
		{
			name: "title, clipboard (OSC 0, OSC 52)", script: "printf '\\033]0;%s\\007\\033]52;c;%s\\007' {MARK} {MARK}",
			terminal:   func(a *attempt, t *terminal) { t.direct() },
			check:      func(a *attempt) bool { return bytes.Contains(a.screen, []byte("\x1b]52;c;"+a.mark)) },
			documented: "Control sequences reach the person's terminal",
		},
	}
	for i := range list {
		list[i].group = group
	}
	return list
}

// typeAway starts the program as a job, stops it or puts it in the background, and types
// to the shell outside.
func typeAway(stop bool) func(*attempt, *terminal) {
	return func(a *attempt, t *terminal) {
		defer t.shell()()
		if stop {
			t.enter(a.command + "\n")
			t.await("READY")
			t.pause()
			t.enter("\x1a")
		} else {
			t.enter(a.command + " </dev/null >" + a.base + "/log 2>&1 &\n")
			t.awaitFile(filepath.Join(a.base, "log"), "BEGIN")
			t.pause()
		}
		t.await("ready> ")
		for range 8 {
			t.enter("pw=" + a.canary + "\n")
			t.pause()
		}
	}
}

// stolen says whether the program got a piece of what was typed.
func stolen(a *attempt) bool {
	data, err := os.ReadFile(filepath.Join(a.ws, "stolen"))
	return err == nil && len(bytes.TrimSpace(data)) > 0
}
