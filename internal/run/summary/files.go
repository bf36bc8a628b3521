package summary

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/policy/files"
)

// fileKey is one line about a refused file.
type fileKey struct {
	path   string
	wanted files.Access
}

// fileTotal is what happened to one fileKey.
type fileTotal struct {
	fileKey
	reason files.Reason
	count  int64
	order  int // of first appearance
	cut    bool
}

// Bounds of what is said about files.
const (
	maxFileKeys  = 1024
	maxFileLines = 10
)

func (c *Collector) file(e *event.FileRefused) {
	k := fileKey{path: clip(e.Path), wanted: e.Wanted}
	if c.files == nil {
		c.files = make(map[fileKey]*fileTotal)
	}
	t := c.files[k]
	if t == nil {
		if len(c.files) >= maxFileKeys {
			c.overflow++
			return
		}
		t = &fileTotal{fileKey: k, reason: e.Reason, order: len(c.files), cut: len(k.path) < len(e.Path)}
		c.files[k] = t
	}
	t.count += max(e.Count, 1)
}

// refusedFiles lists the refused files, in order of appearance.
func (c *Collector) refusedFiles() []*fileTotal {
	list := make([]*fileTotal, 0, len(c.files))
	for _, t := range c.files {
		list = append(list, t)
	}
	slices.SortFunc(list, func(x, y *fileTotal) int { return x.order - y.order })
	return list
}

// writeFiles says which files were refused, and the flags that open them. What
// keeps a secret and what runs later stands apart: a program must not get its way
// by a paste.
func writeFiles(b *bytes.Buffer, list []*fileTotal) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "launch: %s refused\n", plural(len(list), "file"))
	var plain, careful []string
	for i, t := range list {
		if i == maxFileLines {
			fmt.Fprintf(b, "  refused  and %d more: see --events FILE\n", len(list)-i)
			break
		}
		fmt.Fprintf(b, "  refused  %-5s %s  %-9s %s\n", t.wanted.Key(), cli.Safe(t.path), plural(int(t.count), "time"), t.reason)
		if t.cut || cli.Safe(t.path) != t.path {
			continue // the flag would name another file
		}
		switch flag := policyflags.SpellFile(t.path, t.wanted); t.reason {
		case files.Credential, files.RunsLater:
			careful = append(careful, flag)
		case files.HomeDir, files.System, files.State, files.Workspace, files.Temporary:
			plain = append(plain, flag)
		default: // no flag helps: somebody's rule refuses it
		}
	}
	if len(plain) > 0 {
		fmt.Fprintf(b, "To allow what was refused, add:\n  %s\n", strings.Join(plain, " "))
	}
	if len(careful) > 0 {
		fmt.Fprintf(b, "Secrets, and files that run later outside, to allow only if you mean it:\n  %s\n", strings.Join(careful, " "))
	}
}
