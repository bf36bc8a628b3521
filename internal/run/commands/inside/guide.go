package inside

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"

	"egressd/internal/cli"
	"egressd/internal/run/guide"
)

//go:embed guide.txt
var guideText string

// guideOptions are those of launch guide.
type guideOptions struct{ into string }

func (o *guideOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("guide", flag.ContinueOnError)
	fs.StringVar(&o.into, "into", "", "put it into this context `FILE` of an agent (CLAUDE.md, AGENTS.md), in place of an older one")
	return fs
}

// guide prints what an agent should know about the gate, or puts it into a file that
// agents read.
func (l launcher) guide(args []string) int {
	var o guideOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return l.Usage(errors.New("guide takes no arguments; to put it into a file: launch guide --into FILE"))
	}
	if o.into == "" {
		return l.Print(guideText)
	}
	changed, err := guide.Into(o.into, guideText)
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if !changed {
		return l.Print(fmt.Sprintf("%s has it already\n", cli.Safe(o.into)))
	}
	return l.Print(fmt.Sprintf("%s now tells agents about the gate; to undo it, delete the lines between the egressd marks\n", cli.Safe(o.into)))
}
