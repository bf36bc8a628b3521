// Package script is what the command line says for scripts, and how it becomes
// the script that the hermetic tier runs.
//
//	var o script.Options
//	o.Register(fs)
//	argv, err := o.Argv(fs.Args(), os.Stdin)
package script

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"egressd/hermetic/limits"
	"egressd/internal/cli"
	"egressd/sandbox"
)

// Tier is the name of the tier that runs scripts.
const Tier = "hermetic"

// Options are the flags of the hermetic tier. The zero Options are none of them.
type Options struct {
	File    string // "": none; "-": the standard input
	Overlay bool
	Limits  limits.Limits
}

// Register defines the flags on fs.
func (o *Options) Register(fs *flag.FlagSet) {
	fs.StringVar(&o.File, "script", "", "hermetic tier: run this `FILE`; what follows -- are its arguments")
	fs.BoolVar(&o.Overlay, "overlay", false, "keep changes out of the workspace (of the process tier: the working directory), and report them")
}

// Given reports the first of the flags that was given and is for this tier alone, or
// "".
func (o *Options) Given() string {
	if o.File != "" {
		return "--script"
	}
	return ""
}

// Argv reports the command line of the run, with the text of the script in it. args
// is what stands behind the flags. stdin is read if File is "-".
func (o *Options) Argv(args []string, stdin *os.File) ([]string, error) {
	switch {
	case o.File != "":
		return o.fromFile(args, stdin)
	case len(args) == 0:
		return []string{"bash", "-s"}, nil
	}
	return args, nil
}

func (o *Options) fromFile(args []string, f *os.File) ([]string, error) {
	if o.File != "-" {
		var err error
		if f, err = os.Open(o.File); err != nil {
			return nil, fmt.Errorf("--script: %w", err)
		}
		defer f.Close()
	}
	limit := o.Limits.WithDefaults().Source
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("--script: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("--script %s is longer than %d bytes; if it is right, raise the limit: --limit source=N", o.File, limit)
	}
	shell, err := interpreter(string(text))
	if err != nil {
		return nil, err
	}
	return append(append(shell, "-c", string(text), o.File), args...), nil
}

// interpreter reads which shell the first line of a script asks for, with its
// options, as the kernel does. It is bash if the line asks for none.
func interpreter(script string) ([]string, error) {
	line, ok := strings.CutPrefix(script, "#!")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return []string{"bash"}, nil
	}
	for len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	switch name := filepath.Base(words[0]); name {
	case "sh", "bash":
		words[0] = name
		return words, nil
	case "dash", "ash":
		words[0] = "sh"
		return words, nil
	default:
		return nil, &sandbox.CapabilityError{
			Isolation: Tier,
			What:      "the script asks for " + cli.Safe(name) + ", and this tier interprets sh and bash only",
			Fix:       "leave --tier hermetic out: the process tier runs any program behind the same rules",
		}
	}
}

// Fetchable reports whether a script has a client for a target, a URL or
// HOST:PORT. What is spoken at HOST:PORT is not known, so it is fetchable.
func Fetchable(target string) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(target), "://")
	return !ok || scheme == "http" || scheme == "https"
}
