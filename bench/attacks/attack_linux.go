package main

import (
	"bytes"
	"os"
	"strings"
)

// need is what an attack needs of whoever runs it; without it the attack is left out.
type need int

const (
	lab    need = 1 << iota // addresses and names of our own: a network namespace, which root makes
	rooted                  // only root could do it without a sandbox
)

// Names of contestants.
const (
	without   = "without" // no sandbox: the control
	ours      = "launch"
	srt       = "srt"
	srtHidden = "srt, home hidden"
	fence     = "fence"
	variables = "proxy variables alone" // launch's own, for real clients: a proxy that programs may ignore
)

// attack is one thing that a program inside tries.
type attack struct {
	group, name string
	needs       need

	// script is run by sh inside. {NAME}s stand for what run.replace knows.
	script string
	// setup prepares the world outside; nil: nothing to prepare.
	setup func(*attempt) error
	// during is called outside once the script has printed READY; nil: nothing to do.
	during func(*attempt)
	// terminal runs the attack at a terminal, typing what a person would; nil: no terminal.
	terminal func(*attempt, *terminal)
	// check says, outside and after the end, whether the attack succeeded.
	check func(*attempt) bool

	// tell is what launch's events or summary hold if the attack was told; with "" it is not looked for.
	tell string
	// documented is a piece of SECURITY.md or docs/files.md that names what is left over; "" for nothing.
	documented string
	// alone: launch has what is attacked here, and the others have not.
	alone bool
}

// attempt is one attack under one contestant.
type attempt struct {
	*world
	attack  *attack
	who     *contestant
	stdout  []byte // of the script, with what it says on stderr
	stderr  []byte // of the sandbox
	screen  []byte // everything that a terminal showed
	outside bool   // what during or terminal saw: it succeeded
}

// leaks is the check of attacks that read something: what they print holds the decoy.
func leaks(a *attempt) bool { return bytes.Contains(a.stdout, []byte(a.canary)) }

// seen is the check of attacks that are judged while they run.
func seen(a *attempt) bool { return a.outside }

// hears is the check of attacks that send something: a server outside got it.
func hears(a *attempt) bool { return a.lab.heard(a.token) }

// plants is the check of attacks that write: one of the files holds what was planted.
func plants(paths ...string) func(*attempt) bool {
	return func(a *attempt) bool {
		for _, p := range paths {
			data, err := os.ReadFile(a.replace(p))
			if err == nil && strings.Contains(string(data), a.mark) {
				return true
			}
		}
		return false
	}
}

// all are the attacks, in the order of the table.
func all() []attack {
	var list []attack
	for _, part := range [][]attack{
		reads(), laters(), missing(), tricks(), roots(), sockets(), networks(), processes(), terminals(), secrets(),
	} {
		list = append(list, part...)
	}
	return list
}
