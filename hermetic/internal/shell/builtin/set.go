package builtin

import (
	"slices"
	"strings"

	"egressd/hermetic/internal/shell/assign"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
)

// SetOptions applies arguments of set, such as "-e" and "-o", "pipefail". It
// reports false after a message.
func SetOptions(sh *state.Shell, args []string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 {
			continue
		}
		on := a[0] == '-'
		for _, letter := range []byte(a[1:]) {
			if letter == 'o' {
				if i+1 >= len(args) {
					continue
				}
				i++
				if !sh.Options.SetName(args[i], on) {
					sh.Errorf("set: %s: invalid option name", args[i])
					return false
				}
				continue
			}
			if !sh.Options.SetLetter(letter, on) {
				sh.Errorf("set: %c%c: invalid option", a[0], letter)
				sh.ErrText("set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]\n")
				return false
			}
		}
	}
	return true
}

// runSet is the builtin set.
func runSet(sh *state.Shell, args []string) int {
	if len(args) == 1 {
		assign.PrintAll(sh)
		return 0
	}
	i := 1
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			setParams(sh, args[i+1:])
			return 0
		}
		if a == "-" {
			sh.Options.Flags &^= options.XTrace | options.Verbose
			if i+1 < len(args) {
				setParams(sh, args[i+1:])
			}
			return 0
		}
		if a == "+" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		if strings.HasSuffix(a, "o") && i+1 == len(args) {
			if !SetOptions(sh, []string{strings.TrimSuffix(a, "o")}) {
				return 2
			}
			printOptions(sh, a[0] == '+')
			return 0
		}
		used := 1
		if strings.Contains(a[1:], "o") {
			used = 2
		}
		if !SetOptions(sh, args[i:i+used]) {
			return 2
		}
		i += used - 1
	}
	if i < len(args) {
		setParams(sh, args[i:])
	}
	return 0
}

// setParams sets the positional parameters, also beyond the end of a sourced
// file.
func setParams(sh *state.Shell, args []string) {
	sh.Params.List, sh.Params.Given = slices.Clone(args), true
}

// printOptions is set -o, or set +o if commands is true.
func printOptions(sh *state.Shell, commands bool) {
	for _, o := range options.All() {
		switch {
		case commands && o.IsOn(&sh.Options):
			sh.Outf("set -o %s\n", o.Name)
		case commands:
			sh.Outf("set +o %s\n", o.Name)
		default:
			sh.Outf("%-15s\t%s\n", o.Name, onOff(o.IsOn(&sh.Options)))
		}
	}
}
