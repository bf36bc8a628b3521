// Package syntax reads programs of awk into trees, with the extensions of gawk:
//
//	program, err := syntax.Parse(text)
package syntax

import "egressd/hermetic/internal/awk/value"

// Program is a program, with the places of its global variables.
type Program struct {
	Begin, End, BeginFile, EndFile []*Stmt
	Rules                          []*Rule
	Funcs                          map[string]*function
	Globals                        map[string]int
}

// Rule is a pattern and what to do.
type Rule struct {
	From, To Expr // nil: every record; a range has both
	Body     *Stmt
	Active   bool
	Line     int
}

type function struct {
	Name    string
	params  map[string]int
	Count   int
	Body    *Stmt
	Defined bool
	line    int
}

// op of a statement.
type stmtKind int

const (
	SBlock stmtKind = iota
	SExpr
	SPrint
	SPrintf
	SIf
	SWhile
	SDo
	SFor
	SForIn
	SBreak
	SContinue
	SNext
	SNextFile
	SExit
	SReturn
	SDelete
	SSwitch
)

// Stmt is a statement; which fields are set depends on Kind.
type Stmt struct {
	Kind       stmtKind
	List       []*Stmt // of a block; init and step of a for
	Cond       Expr
	Args       []Expr
	Body, Alt  *Stmt
	Init, Step *Stmt
	Array      Expr   // of for-in and delete: a name or an element
	To         string // ">", ">>", "|" or ""
	Dest       Expr
	Cases      []switchCase
	Line       int
}

type switchCase struct {
	Value Expr // nil: default
	Body  []*Stmt
}

// Expr is a pointer to one of the expressions below.
type Expr interface{}

type (
	// NumExpr is a number.
	NumExpr struct{ V value.Value }
	// StrExpr is a string.
	StrExpr struct{ V value.Value }
	// RegexExpr is /re/: alone it is a match of the record.
	RegexExpr struct {
		Src string
	}
	// NameExpr is a variable or an array: global or a parameter.
	NameExpr struct {
		Name  string
		Slot  int
		Local bool
	}
	// IndexExpr is an element of an array, which may be an element itself.
	IndexExpr struct {
		Array Expr
		Subs  []Expr
	}
	// IndirectExpr is @name(arguments).
	IndirectExpr struct {
		Name Expr
		Args []Expr
		Line int
	}
	// FieldExpr is $Index.
	FieldExpr struct{ Index Expr }
	// AssignExpr is Target = Value, or with another operator.
	AssignExpr struct {
		Op     string // "" or "+" ...
		Target Expr
		Value  Expr
	}
	// CondExpr is Cond ? Yes : No.
	CondExpr struct{ Cond, Yes, No Expr }
	// BinExpr is L Op R.
	BinExpr struct {
		Op   string
		L, R Expr
	}
	// UnaryExpr is Op E.
	UnaryExpr struct {
		Op string
		E  Expr
	}
	// IncExpr is ++ or -- of Target: before it if Prefix.
	IncExpr struct {
		Target Expr
		By     float64
		Prefix bool
	}
	// GroupExpr is (List).
	GroupExpr struct{ List []Expr }
	// InExpr is (Subs) in Array.
	InExpr struct {
		Subs  []Expr
		Array Expr
	}
	// MatchExpr is E ~ Re, or !~.
	MatchExpr struct {
		E, Re  Expr
		Negate bool
	}
	// CallExpr calls a function of the program.
	CallExpr struct {
		F    *function
		Args []Expr
		Line int
	}
	// BuiltinExpr calls a function of awk.
	BuiltinExpr struct {
		Name string
		Args []Expr
		Line int
	}
	// GetlineExpr is getline in its forms: From is "<", "|" or "".
	GetlineExpr struct {
		Target Expr // nil: $0
		From   string
		Source Expr
	}
)
