package diff

import (
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/regex"
	"egressd/hermetic/internal/shell/pattern"
)

const diffSpec = `,normal q,brief s,report-identical-files c C: ,context:: u U: ,unified:: e,ed n,rcs y,side-by-side W:,width:
	,left-column ,suppress-common-lines p,show-c-function F:,show-function-line: L:,label: t,expand-tabs T,initial-tab ,tabsize:
	,suppress-blank-empty l,paginate r,recursive ,no-dereference N,new-file ,unidirectional-new-file ,ignore-file-name-case
	,no-ignore-file-name-case x:,exclude: X:,exclude-from: S:,starting-file: ,from-file: ,to-file: i,ignore-case E,ignore-tab-expansion
	Z,ignore-trailing-space b,ignore-space-change w,ignore-all-space B,ignore-blank-lines I:,ignore-matching-lines: a,text
	,strip-trailing-cr D:,ifdef: ,line-format: ,old-line-format: ,new-line-format: ,unchanged-line-format: ,GTYPE-group-format:
	d,minimal ,horizon-lines: H,speed-large-files ,color:: ,palette: 0 1 2 3 4 5 6 7 8 9`

// The shapes of diff's output.
type style int

const (
	normal style = iota
	contextual
	unified
	edScript
	rcsScript
	sideBySide
)

// differ is one call of diff.
type differ struct {
	*gnu.Work
	style      style
	styled     bool // a style was asked for
	context    int
	like       Likeness
	brief      bool
	same       bool // -s
	recursive  bool
	newFile    bool // -N
	newFirst   bool // --unidirectional-new-file
	noFollow   bool
	blank      bool // -B
	ignore     *regex.Regexp
	ignores    []string
	text       bool
	stripCR    bool
	minimal    bool
	horizon    int
	labels     []string
	excludes   []*pattern.Pattern
	startAt    string
	function   *regex.Regexp
	functions  []string
	initialTab bool
	expandTabs bool
	emptyBlank bool // --suppress-blank-empty
	width      int
	leftOnly   bool
	noCommon   bool
	color      bool
	switches   string // as they were given, for "diff -r a/x b/x"
	from, to   string // --from-file, --to-file
	dirs       bool   // comparing directories
	digits     string
}

// set takes one option; false: it was refused.
func (d *differ) set(o command.Set) bool {
	if d.setFlag(o.Name) {
		return true
	}
	switch o.Name {
	case "C", "context":
		return d.setContext(contextual, o)
	case "U", "unified":
		return d.setContext(unified, o)
	case "width":
		return d.number(o, &d.width, "invalid width '%s'", 1)
	case "horizon-lines":
		return d.number(o, &d.horizon, "invalid horizon length '%s'", 0)
	case "tabsize":
		if o.Value != "8" {
			d.Refuse("--tabsize")
			return false
		}
	case "label":
		if len(d.labels) == 2 {
			TryHelp(d.Work, "too many file label options")
			return false
		}
		d.labels = append(d.labels, o.Value)
	case "exclude":
		d.excludes = append(d.excludes, pattern.Compile(o.Value, pattern.Options{}))
	case "exclude-from":
		return d.excludeFrom(o.Value)
	case "starting-file":
		d.startAt = o.Value
	case "from-file":
		d.from = o.Value
	case "to-file":
		d.to = o.Value
	case "ignore-matching-lines":
		d.ignores = append(d.ignores, o.Value)
	case "show-function-line":
		d.functions = append(d.functions, o.Value)
	case "color":
		return d.setColor(o)
	case "palette":
	default:
		return d.setDigit(o)
	}
	return true
}

func (d *differ) setDigit(o command.Set) bool {
	if len(o.Name) == 1 && o.Name[0] >= '0' && o.Name[0] <= '9' {
		d.digits += o.Name
		return true
	}
	d.Refuse(map[bool]string{true: "-", false: "--"}[len(o.Name) == 1] + o.Name)
	return false
}

func (d *differ) setColor(o command.Set) bool {
	switch o.Value {
	case "", "auto", "never":
	case "always":
		d.color = true
	default:
		TryHelp(d.Work, "invalid color '%s'", o.Value)
		return false
	}
	return true
}

// setFlag takes an option without a value; false: it is none of these.
func (d *differ) setFlag(name string) bool {
	flags := map[string]*bool{
		"brief": &d.brief, "report-identical-files": &d.same, "recursive": &d.recursive, "new-file": &d.newFile,
		"unidirectional-new-file": &d.newFirst, "no-dereference": &d.noFollow, "ignore-blank-lines": &d.blank,
		"text": &d.text, "strip-trailing-cr": &d.stripCR, "minimal": &d.minimal, "initial-tab": &d.initialTab,
		"expand-tabs": &d.expandTabs, "suppress-blank-empty": &d.emptyBlank, "left-column": &d.leftOnly,
		"suppress-common-lines": &d.noCommon, "ignore-case": &d.like.fold, "ignore-tab-expansion": &d.like.tabs,
		"ignore-trailing-space": &d.like.noTail, "ignore-space-change": &d.like.AnySpace, "ignore-all-space": &d.like.noSpace,
	}
	styles := map[string]style{
		"normal": normal, "c": contextual, "u": unified, "ed": edScript, "rcs": rcsScript, "side-by-side": sideBySide,
	}
	if at := flags[name]; at != nil {
		*at = true
		return true
	}
	if s, ok := styles[name]; ok {
		d.style, d.styled = s, true
		if s == contextual || s == unified {
			d.context = max(d.context, 3)
		}
		return true
	}
	switch name {
	case "show-c-function":
		d.functions = append(d.functions, `^[[:alpha:]$_]`)
		if !d.styled {
			d.style, d.context = contextual, max(d.context, 3)
		}
		return true
	// A search for the shortest script is made for large files, too.
	case "speed-large-files", "no-ignore-file-name-case":
		return true
	}
	return false
}

func (d *differ) setContext(s style, o command.Set) bool {
	d.style, d.styled = s, true
	if !o.Given {
		d.context = max(d.context, 3)
		return true
	}
	n, err := strconv.Atoi(o.Value)
	if err != nil || n < 0 {
		TryHelp(d.Work, "invalid context length '%s'", o.Value)
		return false
	}
	d.context = max(d.context, min(n, 1<<30))
	return true
}

func (d *differ) number(o command.Set, at *int, complaint string, least int) bool {
	n, err := strconv.Atoi(o.Value)
	if err != nil || n < least {
		TryHelp(d.Work, complaint, o.Value)
		return false
	}
	*at = n
	return true
}

func (d *differ) excludeFrom(name string) bool {
	r, err := d.Open(name)
	if err == nil {
		var b []byte
		b, err = d.All(r)
		_ = r.Close()
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimRight(line, " \t\r\n"); line != "" {
				d.excludes = append(d.excludes, pattern.Compile(line, pattern.Options{}))
			}
		}
	}
	if err != nil {
		d.Die(2, "%s: %s", name, Reason(err))
	}
	return err == nil
}

// settle compiles the expressions and joins what depends on several options.
func (d *differ) settle() bool {
	if d.digits != "" {
		n, err := strconv.Atoi(d.digits)
		if err != nil {
			n = 1 << 30
		}
		if d.style != contextual && d.style != unified {
			TryHelp(d.Work, "'-%s' option is obsolete; use '-%s'", d.digits, "U "+d.digits)
			return false
		}
		d.context = n
	}
	d.like.noEnd = d.style == edScript
	d.horizon = max(d.horizon, d.context)
	for _, e := range []struct {
		list []string
		at   **regex.Regexp
	}{{d.ignores, &d.ignore}, {d.functions, &d.function}} {
		if len(e.list) == 0 {
			continue
		}
		re, err := regex.CompileAny(e.list, regex.Options{Syntax: regex.GrepBasic, Steps: d.Budget.Steps})
		if err != nil {
			d.Die(2, "%s: %s", strings.Join(e.list, "\n"), err)
			return false
		}
		*e.at = re
	}
	return true
}

// switchesOf writes the options of args as diff repeats them before each pair of
// files.
func switchesOf(args []string) string {
	var b strings.Builder
	takes := map[string]bool{}
	letters := ""
	for _, f := range strings.Fields(diffSpec) {
		if name, ok := strings.CutSuffix(f, ":"); ok && !strings.HasSuffix(name, ":") {
			short, long, _ := strings.Cut(name, ",")
			letters += short
			takes[long] = true
		}
	}
	for i := 1; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			continue
		}
		b.WriteString(" " + quoted(a))
		if a == "--" {
			break
		}
		next := takes[strings.TrimPrefix(a, "--")]
		if a[1] != '-' {
			at := strings.IndexAny(a[1:], letters)
			next = at >= 0 && at == len(a)-2
		}
		if next && i+1 < len(args) {
			i++
			b.WriteString(" " + quoted(args[i]))
		}
	}
	return b.String()
}
