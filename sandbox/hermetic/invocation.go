package hermetic

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"egressd/sandbox"
)

// invocation is a script and how a shell was asked to run it.
type invocation struct {
	script  string
	name    string   // $0
	args    []string // $1 and on
	options []string // as for set
	stdin   bool     // the script is what the standard input says
}

// tradeOff is what to type for everything else.
const tradeOff = "leave --tier hermetic out: the process tier runs any program behind the same rules"

func refuse(what string) error {
	return &sandbox.CapabilityError{Isolation: isolation, What: what, Fix: tradeOff}
}

// invoked reports what spec asks for. Only a shell is there to run anything, and
// it is ours: sh and bash are the same one.
func invoked(spec sandbox.Spec) (invocation, error) {
	switch {
	case len(spec.Argv) > 0 && spec.Script != "":
		return invocation{}, &sandbox.CapabilityError{Isolation: isolation, What: "a run has a command or a script, not both"}
	case len(spec.Argv) > 0:
		return fromArgv(spec.Argv)
	case spec.Script == "":
		return invocation{}, &sandbox.CapabilityError{Isolation: isolation, What: "nothing to run"}
	case spec.Shell != "" && spec.Shell != "sh" && spec.Shell != "bash":
		return invocation{}, refuse(fmt.Sprintf("this tier is a shell of its own, called sh or bash; %s is not in it", spec.Shell))
	}
	name := spec.Shell
	if name == "" {
		name = "sh"
	}
	return invocation{script: spec.Script, name: name}, nil
}

func fromArgv(argv []string) (invocation, error) {
	name := filepath.Base(argv[0])
	if agent := sandbox.AgentVars(argv); agent != nil && !isShell(name) {
		return invocation{}, refuse(fmt.Sprintf("%s is an agent, a program of its own; this tier interprets shell scripts and runs no program", name))
	}
	if !isShell(name) {
		return invocation{}, refuse(fmt.Sprintf("it interprets shell scripts and runs no program, so %q must be a script: sh -c 'SCRIPT', --script FILE, or a script on the standard input", argv[0]))
	}
	i, err := shellWords(argv)
	if err != nil {
		return i, &sandbox.CapabilityError{Isolation: isolation, What: err.Error(), Fix: "write sh -c 'SCRIPT' [NAME ARGUMENT...], --script FILE, or " + tradeOff}
	}
	return i, nil
}

func isShell(name string) bool { return name == "sh" || name == "bash" }

// shellWords reads a command line as bash does: letters together, -o with the
// next word, options also between -c and the script.
func shellWords(argv []string) (invocation, error) {
	i := invocation{name: argv[0]}
	words := argv[1:]
	command := false
	for len(words) > 0 {
		w := words[0]
		if w == "--" || w == "-" {
			words = words[1:]
			break
		}
		if len(w) < 2 || w[0] != '-' && w[0] != '+' {
			break
		}
		words = words[1:]
		if strings.HasPrefix(w, "--") {
			if !slices.Contains([]string{"--norc", "--noprofile", "--login", "--noediting", "--posix"}, w) {
				return i, fmt.Errorf("%s %s: there is no such option here", argv[0], w)
			}
			continue
		}
		for _, letter := range w[1:] {
			switch {
			case letter == 'c' && w[0] == '-':
				command = true
			case letter == 's' && w[0] == '-':
				i.stdin = true
			case letter == 'l':
			case letter == 'o' || letter == 'O':
				if len(words) == 0 {
					return i, fmt.Errorf("%s %s: option requires an argument", argv[0], w)
				}
				i.options = append(i.options, string(w[0])+string(letter), words[0])
				words = words[1:]
			case strings.ContainsRune("abefhkmnptuvxBCEHPT", letter):
				i.options = append(i.options, string(w[0])+string(letter))
			default:
				return i, fmt.Errorf("%s %c%c: there is no such option here", argv[0], w[0], letter)
			}
		}
	}
	return i.operands(command, words)
}

// operands gives the words after the options their meaning.
func (i invocation) operands(command bool, words []string) (invocation, error) {
	switch {
	case command && len(words) == 0:
		return i, errors.New("-c: option requires an argument")
	case command:
		i.stdin = false
		i.script, words = words[0], words[1:]
		if len(words) > 0 {
			i.name, words = words[0], words[1:]
		}
	case i.stdin || len(words) == 0:
		i.stdin = true
	default:
		return i, fmt.Errorf("%s %s: scripts in files come in with --script %s", i.name, words[0], words[0])
	}
	i.args = words
	return i, nil
}
