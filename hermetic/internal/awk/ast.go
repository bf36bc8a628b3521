package awk

type program struct {
	begin, end, beginFile, endFile []*stmt
	rules                          []*rule
	funcs                          map[string]*function
	globals                        map[string]int
}

type rule struct {
	from, to expr // nil: every record; a range has both
	body     *stmt
	active   bool
	line     int
}

type function struct {
	name    string
	params  map[string]int
	count   int
	body    *stmt
	defined bool
	line    int
}

// op of a statement.
type stmtKind int

const (
	sBlock stmtKind = iota
	sExpr
	sPrint
	sPrintf
	sIf
	sWhile
	sDo
	sFor
	sForIn
	sBreak
	sContinue
	sNext
	sNextFile
	sExit
	sReturn
	sDelete
	sSwitch
)

type stmt struct {
	kind       stmtKind
	list       []*stmt // of a block; init and step of a for
	cond       expr
	args       []expr
	body, alt  *stmt
	init, step *stmt
	array      expr   // of for-in and delete: a name or an element
	to         string // ">", ">>", "|" or ""
	dest       expr
	cases      []switchCase
	line       int
}

type switchCase struct {
	value expr // nil: default
	body  []*stmt
}

type expr interface{}

type (
	numExpr struct{ v value }
	strExpr struct{ v value }
	// regexExpr is /re/: alone it is a match of the record.
	regexExpr struct {
		src string
	}
	// nameExpr is a variable or an array: global or a parameter.
	nameExpr struct {
		name  string
		slot  int
		local bool
	}
	// indexExpr is an element of an array, which may be an element itself.
	indexExpr struct {
		array expr
		subs  []expr
	}
	// indirectExpr is @name(arguments).
	indirectExpr struct {
		name expr
		args []expr
		line int
	}
	fieldExpr  struct{ index expr }
	assignExpr struct {
		op     string // "" or "+" ...
		target expr
		value  expr
	}
	condExpr struct{ cond, yes, no expr }
	binExpr  struct {
		op   string
		l, r expr
	}
	unaryExpr struct {
		op string
		e  expr
	}
	incExpr struct {
		target expr
		by     float64
		prefix bool
	}
	groupExpr struct{ list []expr }
	inExpr    struct {
		subs  []expr
		array expr
	}
	matchExpr struct {
		e, re  expr
		negate bool
	}
	callExpr struct {
		f    *function
		args []expr
		line int
	}
	builtinExpr struct {
		name string
		args []expr
		line int
	}
	getlineExpr struct {
		target expr // nil: $0
		from   string
		source expr
	}
)
