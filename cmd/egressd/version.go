package main

import (
	"errors"
	"strings"

	"egressd/internal/cli/completion"
	"egressd/internal/cli/explain"
)

func (p *program) version(args []string) int {
	if wantsHelp(args) {
		return p.help([]string{"version"})
	}
	if len(args) > 0 {
		return p.usage(errors.New("version takes no arguments"))
	}
	return p.print("egressd " + explain.Version() + "\n")
}

func (p *program) completion(args []string) int {
	if wantsHelp(args) {
		return p.help([]string{"completion"})
	}
	if len(args) != 1 {
		return p.usage(errors.New("completion takes one shell: bash, zsh or fish"))
	}
	spec := completion.Spec{Program: "egressd", Flags: new(options).flags()}
	for _, c := range commands() {
		if strings.HasPrefix(c.name, "-") {
			continue
		}
		sub := completion.Command{Name: c.name}
		if c.fs != nil {
			sub.Flags = c.fs()
		}
		spec.Commands = append(spec.Commands, sub)
	}
	text, err := completion.Script(args[0], spec)
	if err != nil {
		return p.usage(err)
	}
	return p.print(text)
}
