// Package completion writes completion scripts for bash, zsh and fish from flag
// sets, so that they cannot fall behind the flags.
//
//	text, err := completion.Script("bash", completion.Spec{Program: "launch", Flags: fs, Runs: true})
package completion

import (
	"flag"
	"fmt"
	"strings"
)

// Spec is a program: its own flags and its subcommands.
type Spec struct {
	Program  string
	Flags    *flag.FlagSet
	Commands []Command
	Runs     bool // the flags end at another program, which this one runs
}

// Command is a subcommand. Flags may be nil. Words are what may follow its name.
type Command struct {
	Name  string
	Flags *flag.FlagSet
	Words []string
}

// words lists what may follow a subcommand's name, flags included.
func (c Command) words() string {
	return strings.TrimSpace(strings.Join(c.Words, " ") + " " + switches(options(c.Flags)))
}

// Script reports the completion script for bash, zsh or fish, or for "man" the manual
// page.
func Script(shell string, s Spec) (string, error) {
	switch shell {
	case "bash":
		return bash(s), nil
	case "zsh":
		return zsh(s), nil
	case "fish":
		return fish(s), nil
	case "man":
		return man(s), nil
	}
	return "", fmt.Errorf("no completion for shell %q: bash, zsh or fish; man is the manual page", shell)
}

// option is one flag as the scripts need it.
type option struct {
	name, arg, usage string // arg is "" for a switch
}

func options(fs *flag.FlagSet) []option {
	var out []option
	if fs == nil {
		return out
	}
	fs.VisitAll(func(f *flag.Flag) {
		arg, usage := flag.UnquoteUsage(f)
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			arg = ""
		}
		out = append(out, option{f.Name, arg, usage})
	})
	return out
}

// takesFile reports whether a flag's argument is a path, or may be one. An optional
// part before it is in brackets.
func (o option) takesFile() bool {
	arg := o.arg[strings.LastIndexByte(o.arg, ']')+1:]
	return arg == "FILE" || arg == "FILE|-" || arg == "DIR" || arg == "PATH"
}

// choices lists the values that a flag accepts; "" if they are not a few words.
func (o option) choices() string {
	switch o.name {
	case "isolation":
		return "netns env"
	case "color":
		return "auto always never"
	case "agent":
		return "claude-code codex cursor command mock"
	case "on-replaced":
		return "end continue"
	case "tier":
		return "process hermetic vercel"
	case "log-level":
		return "debug info warn error"
	case "log-format":
		return "text json"
	}
	return ""
}

func names(s Spec) string {
	var out []string
	for _, c := range s.Commands {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

func switches(opts []option) string {
	var out []string
	for _, o := range opts {
		out = append(out, "--"+o.name)
	}
	return strings.Join(out, " ")
}

// cases reports the names of the flags that ok picks, as a shell pattern. Without
// any, nothing matches the pattern.
func cases(opts []option, ok func(option) bool) string {
	var out []string
	for _, o := range opts {
		if ok(o) {
			out = append(out, "--"+o.name, "-"+o.name)
		}
	}
	if len(out) == 0 {
		return "/none/"
	}
	return strings.Join(out, "|")
}

// bashProgram completes as for the program at word i.
const bashProgram = `        [[ ${COMP_WORDS[i]} == -- ]] && ((i++))
        if declare -F _command_offset >/dev/null; then _command_offset $i
        elif ((i == COMP_CWORD)); then COMPREPLY=($(compgen -c -- "$cur"))
        else COMPREPLY=($(compgen -f -- "$cur")); fi
`

// bash writes the script for bash. After "--" it completes as for that program.
func bash(s Spec) string {
	opts := options(s.Flags)
	var sub strings.Builder
	for _, c := range s.Commands {
		if fl := c.words(); fl != "" {
			fmt.Fprintf(&sub, "        %s) COMPREPLY=($(compgen -W %q -- \"$cur\")); [[ $cur == -* ]] || COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", c.Name, fl)
		}
	}
	var choices strings.Builder
	for _, o := range opts {
		if words := o.choices(); words != "" {
			fmt.Fprintf(&choices, "    --%s) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", o.name, words)
		}
	}
	rest := ""
	if s.Runs {
		rest = bashProgram
	}
	return strings.NewReplacer("@P", s.Program, "@CHOICES", choices.String(), "@REST", rest, "@COMMANDS", names(s), "@FLAGS", switches(opts), "@SUB", sub.String(),
		"@FILES", cases(opts, option.takesFile),
		"@WORDS", cases(opts, func(o option) bool { return o.arg != "" && !o.takesFile() })).Replace(
		`# bash completion for @P. Load it with: source <(@P completion bash)
_@P() {
    local cur=${COMP_WORDS[COMP_CWORD]} i word
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --) break ;;
        @FILES|@WORDS) ((i++)) ;;
        -*|=|*=*) ;;
        *) break ;;
        esac
    done
    if ((i < COMP_CWORD)); then
        [[ $i -eq 1 ]] && case $word in
@SUB        presets) COMPREPLY=($(compgen -W "$(@P presets --names 2>/dev/null)" -- "$cur")); return ;;
        completion) COMPREPLY=($(compgen -W "bash zsh fish man" -- "$cur")); return ;;
        check) COMPREPLY=($(compgen -f -- "$cur")); return ;;
        esac
@REST        return
    fi
    case ${COMP_WORDS[COMP_CWORD-1]} in
    --preset) COMPREPLY=($(compgen -W "$(@P presets --names 2>/dev/null)" -- "$cur")); return ;;
@CHOICES    @FILES) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    @WORDS) return ;;
    esac
    if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "@FLAGS --" -- "$cur"))
    elif ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W "@COMMANDS" -- "$cur")); fi
}
complete -o filenames -F _@P @P
`,
	)
}

func zsh(s Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# zsh completion for %s. Load it with: source <(%s completion zsh)\n", s.Program, s.Program, s.Program)
	fmt.Fprintf(&b, "_%s() {\n  local -a flags\n  flags=(\n", s.Program)
	for _, o := range options(s.Flags) {
		fmt.Fprintf(&b, "    %s\n", single("*--"+o.name+"["+zshText(o.usage)+"]"+zshArg(s.Program, o)))
	}
	b.WriteString("  )\n")
	fmt.Fprintf(&b, "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n    compadd -- %s\n    return\n  fi\n", names(s))
	b.WriteString("  case $words[2] in\n")
	for _, c := range s.Commands {
		switch c.Name {
		case "completion":
			b.WriteString("  completion) compadd bash zsh fish man; return ;;\n")
		case "presets":
			fmt.Fprintf(&b, "  presets) compadd -- $(%s presets --names 2>/dev/null); return ;;\n", s.Program)
		case "check":
			b.WriteString("  check) _files; return ;;\n")
		default:
			fmt.Fprintf(&b, "  %s) compadd -- %s; return ;;\n", c.Name, c.words())
		}
	}
	b.WriteString("  esac\n  _arguments -S $flags")
	if s.Runs {
		b.WriteString(" '(-)1:program:_command_names -e' '*::argument:_normal'")
	}
	b.WriteString("\n}\n")
	fmt.Fprintf(&b, "if [ \"$funcstack[1]\" = \"_%s\" ]; then _%s \"$@\"; else compdef _%s %s; fi\n", s.Program, s.Program, s.Program, s.Program)
	return b.String()
}

func zshArg(program string, o option) string {
	switch {
	case o.arg == "":
		return ""
	case o.arg == "DIR":
		return ":DIR:_files -/"
	case o.takesFile():
		return ":" + zshText(o.arg) + ":_files"
	case o.name == "preset":
		return ":" + o.arg + ":($(" + program + " presets --names 2>/dev/null))"
	case o.choices() != "":
		return ":" + o.arg + ":(" + o.choices() + ")"
	}
	return ":" + zshText(o.arg) + ": "
}

// zshText escapes what _arguments reads: brackets and colons.
func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

func fish(s Spec) string {
	var b strings.Builder
	p := s.Program
	fmt.Fprintf(&b, "# fish completion for %s. Load it with: %s completion fish | source\n", p, p)
	fmt.Fprintf(&b, "complete -c %s -f\n", p)
	for _, c := range s.Commands {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -a %s\n", p, c.Name)
		if len(c.Words) > 0 {
			fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from %s' -a %s\n", p, c.Name, single(strings.Join(c.Words, " ")))
		}
		for _, o := range options(c.Flags) {
			fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from %s' %s\n", p, c.Name, fishFlag(p, o))
		}
	}
	for _, o := range options(s.Flags) {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand %s\n", p, fishFlag(p, o))
	}
	fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish man'\n", p)
	fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from presets' -a '(%s presets --names 2>/dev/null)'\n", p, p)
	fmt.Fprintf(&b, "complete -c %s -n '__fish_seen_subcommand_from check' -F\n", p)
	if !s.Runs {
		return b.String()
	}
	fmt.Fprintf(&b, "complete -c %s -n 'contains -- -- (commandline -opc)' -xa '(__fish_complete_subcommand --fcs-skip=(contains -i -- -- (commandline -opc)))'\n", p)
	return b.String()
}

func fishFlag(program string, o option) string {
	text := "-l " + o.name + " -d " + single(o.usage)
	switch {
	case o.arg == "":
		return text
	case o.takesFile():
		return text + " -r -F"
	case o.name == "preset":
		return text + " -x -a '(" + program + " presets --names 2>/dev/null)'"
	case o.choices() != "":
		return text + " -x -a " + single(o.choices())
	}
	return text + " -x"
}

// single makes s one single-quoted word of any of the three shells.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
