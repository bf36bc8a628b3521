package completion

import (
	"fmt"
	"slices"
	"strings"
)

// man writes the manual page, in the macros of man(7). It has no date, so that two builds
// of it are equal.
func man(s Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" egressd \"User Commands\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", strings.ToUpper(s.Program), s.Program, purpose(s))
	if s.Runs {
		fmt.Fprintf(&b, ".B %s\n[\\fIflags\\fR] \\-\\- \\fIPROGRAM\\fR [\\fIARGUMENT\\fR...]\n.br\n", s.Program)
	} else {
		fmt.Fprintf(&b, ".B %s\n[\\fIflags\\fR]\n.br\n", s.Program)
	}
	fmt.Fprintf(&b, ".B %s\n\\fICOMMAND\\fR [\\fIflags\\fR]\n.SH OPTIONS\n", s.Program)
	manFlags(&b, options(s.Flags))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range s.Commands {
		fmt.Fprintf(&b, ".SS %s\n", roff(c.Name+" "+strings.Join(slices.Sorted(slices.Values(c.Words)), " | ")))
		manFlags(&b, options(c.Flags))
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n.B %s help\nsays the same with examples.\n", s.Program)
	return b.String()
}

// purpose is what the program is for, in a line.
func purpose(s Spec) string {
	if s.Runs {
		return "run a program behind a gate that lets out only what you allow"
	}
	return "the gate as a service: lets out only what its policies allow"
}

func manFlags(b *strings.Builder, opts []option) {
	for _, o := range opts {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff("--"+o.name))
		if o.arg != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(o.arg))
		}
		fmt.Fprintf(b, "\n%s\n", roff(o.usage))
	}
}

// roff is text that no macro or escape is read in.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(strings.TrimSpace(text))
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
