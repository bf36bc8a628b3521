package regex

// Syntax is a dialect. The zero value is none, and an error.
type Syntax uint8

// The dialects: glibc's RE_SYNTAX_* as the named commands use them.
const (
	Basic        Syntax = iota + 1 // expr, and find -regextype posix-basic
	Extended                       // bash, and find -regextype posix-extended
	GrepBasic                      // grep -G
	GrepExtended                   // grep -E
	SedBasic                       // sed; with its own escapes: \n \t \x41
	SedExtended                    // sed -E
	Awk                            // gawk: \y is \b, and escapes as in its strings
	Emacs                          // find -regex
	Fixed                          // grep -F
	Perl                           // grep -P: groups, lazy and possessive, look-around, \d \K \Q…\E
)

// dialect says how the operators of a syntax are written.
type dialect struct {
	escaped       bool // \( \) \{ \} are the operators, ( ) { } characters
	escapedBar    bool
	escapedPlus   bool // \+ and \?
	noIntervals   bool
	anchors       bool // ^ and $ are anchors wherever they stand
	skipOps       bool // an operator with nothing before it is skipped, not a character
	invalidOps    bool // ... is an error
	invalidDup    bool // ... an interval is
	looseInterval bool // an interval that is none is text
	looseClose    bool // ) without ( is text
	grep          bool // warn as grep does
	sed, awk      bool // escapes of theirs
}

func dialectOf(s Syntax) (dialect, bool) {
	d, ok := map[Syntax]dialect{
		Basic:        {escaped: true, escapedBar: true, escapedPlus: true},
		Extended:     {anchors: true, skipOps: true, invalidOps: true, invalidDup: true, looseClose: true},
		GrepBasic:    {escaped: true, escapedBar: true, escapedPlus: true, grep: true},
		GrepExtended: {anchors: true, skipOps: true, looseInterval: true, looseClose: true, grep: true},
		SedBasic:     {escaped: true, escapedBar: true, escapedPlus: true, invalidDup: true, sed: true},
		SedExtended:  {anchors: true, skipOps: true, invalidOps: true, invalidDup: true, sed: true},
		Awk:          {anchors: true, looseInterval: true, looseClose: true, awk: true},
		Emacs:        {escaped: true, escapedBar: true, noIntervals: true},
	}[s]
	return d, ok
}

// message is an error in the words of glibc.
type message string

func (m message) Error() string { return string(m) }

// The errors of regcomp(3).
const (
	errBracket   = message("Unmatched [, [^, [:, [., or [=")
	errParen     = message(`Unmatched ( or \(`)
	errClose     = message(`Unmatched ) or \)`)
	errBrace     = message(`Unmatched \{`)
	errBadBrace  = message(`Invalid content of \{\}`)
	errRange     = message("Invalid range end")
	errBackref   = message("Invalid back reference")
	errTrailing  = message("Trailing backslash")
	errClass     = message("Invalid character class name")
	errCollate   = message("Invalid collation character")
	errRepeat    = message("Invalid preceding regular expression")
	errTooBig    = message("Regular expression too big")
	errNoSyntax  = message("no such syntax of regular expressions")
	errClassForm = message("character class syntax is [[:space:]], not [:space:]")
)
