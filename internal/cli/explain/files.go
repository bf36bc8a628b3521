package explain

import (
	"fmt"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/policy/files"
)

// FileQuestion is one question about a file.
type FileQuestion struct {
	Asked  string       // as the person wrote it
	Path   string       // absolute, without links
	Wanted files.Access // ReadOnly: may it be read; ReadWrite: may it be written
}

// Files answers questions about files, in order. allowed reports whether the
// answer to each is yes.
func Files(g *files.Gate, questions []FileQuestion) (text string, allowed bool) {
	var b strings.Builder
	allowed = true
	for _, q := range questions {
		d := g.Decide(q.Path)
		word, verb := "allowed", q.Wanted.Key()
		if d.Access < q.Wanted {
			word, allowed = "denied", false
		}
		fmt.Fprintf(&b, "%-8s %s %s: it is %s\n", word, verb, cli.Safe(q.Asked), d.Access)
		if q.Asked != q.Path {
			fmt.Fprintf(&b, "  file    %s\n", cli.Safe(q.Path))
		}
		fmt.Fprintf(&b, "  reason  %s: %s\n", d.Reason, FileMeaning(d.Reason))
		if d.Rule != (files.Rule{}) {
			fmt.Fprintf(&b, "  rule    %s   (%s)\n", cli.Safe(d.Rule.Path), cli.Safe(d.Rule.At))
		}
		if d.Access < q.Wanted {
			writeFileAdvice(&b, q, d)
		}
	}
	return b.String(), allowed
}

func writeFileAdvice(b *strings.Builder, q FileQuestion, d files.Decision) {
	switch d.Reason {
	case files.NoPolicy, files.Socket:
		return
	case files.Named:
		b.WriteString("  to allow it, change that rule\n")
		return
	case files.RunsLater:
		b.WriteString("  to allow it, if what the program writes there may run outside later, add:\n")
	case files.Credential:
		b.WriteString("  to allow it, if the program may have what is in it, add:\n")
	case files.Workspace, files.HomeDir, files.System, files.Temporary, files.State:
		b.WriteString("  to allow it, add:\n")
	}
	fmt.Fprintf(b, "    %s\n", policyflags.SpellFile(q.Path, q.Wanted))
}

// FileMeaning says what a reason about a file means to a person.
func FileMeaning(r files.Reason) string {
	words := [...]string{
		files.NoPolicy:   "no rule covers it, so it is hidden",
		files.Named:      "a rule of the policy or a flag covers it",
		files.Workspace:  "it is below the working directory",
		files.HomeDir:    "it is below the home directory",
		files.System:     "it is outside the working directory and the home directory",
		files.Temporary:  "it is the run's own, and gone afterwards",
		files.State:      "a cache, or what the agent must have",
		files.Credential: "it keeps a secret",
		files.RunsLater:  "outside, it is run or obeyed later",
		files.Socket:     "a unix socket that somebody outside serves",
	}
	if int(r) < len(words) {
		return words[r]
	}
	return "unknown"
}

// writeFileRules lists the rules of a files section, each with its place.
func writeFileRules(b *strings.Builder, s files.Section) {
	for _, list := range s.Lists() {
		for _, r := range list.Rules[:min(len(list.Rules), maxRules)] {
			fmt.Fprintf(b, "%-7s %s  %s\n", list.Access.Key(), cli.Safe(r.Path), cli.Safe(r.At))
		}
		if more := len(list.Rules) - maxRules; more > 0 {
			fmt.Fprintf(b, "%-7s and %d more\n", list.Access.Key(), more)
		}
	}
	if s.Home != files.HomeUnset {
		fmt.Fprintf(b, "home    %s\n", s.Home)
	}
}

// FilesHere says what becomes of a few directories that everybody asks about.
func FilesHere(g *files.Gate, at files.Place) string {
	var b strings.Builder
	here := []string{at.Workspace}
	if at.Home != "" && at.Home != at.Workspace {
		here = append(here, at.Home)
	}
	for _, path := range append(here, "/usr") {
		d := g.Decide(path)
		fmt.Fprintf(&b, "here    %s is %s (%s)\n", cli.Safe(path), d.Access, d.Reason)
	}
	return b.String()
}
