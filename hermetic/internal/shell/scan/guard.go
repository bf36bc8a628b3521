package scan

import (
	"errors"
	"io"
	"runtime"
	"strings"
)

// errDeep ends a parse that nests too deeply.
var errDeep = errors.New("too deep")

// framesPerLevel is the most calls that the parser makes for one level of
// syntax.
const framesPerLevel = 40

// guard feeds a text to the parser in pieces, and checks the depth of the
// parser's own calls each time.
//
// Threat: a script of nothing but "((((" or "${a:-${a:-" -> the parser recurses
// for each, and Go ends the whole process when a stack is full -> the parser
// asks for the next kilobyte at the depth where it is, and gets an error if
// that is too deep -> the depth that one kilobyte can add.
type guard struct {
	r      io.Reader
	frames int
	deep   bool
}

func guarded(text string, levels int) *guard {
	return &guard{r: strings.NewReader(text), frames: levels * framesPerLevel}
}

func (g *guard) Read(p []byte) (int, error) {
	var pc [1]uintptr
	if runtime.Callers(g.frames, pc[:]) > 0 {
		g.deep = true
		return 0, errDeep
	}
	return g.r.Read(p[:min(len(p), 1024)])
}
