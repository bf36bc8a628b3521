package scan

import (
	"errors"
	"io"
	"runtime"
	"strings"
)

// errDeep ends a parse that went too deep.
var errDeep = errors.New("too deep")

// framesPerLevel is what the parser calls, at most, for one level of syntax.
const framesPerLevel = 40

// guard gives a text to the parser piece by piece, and looks each time how deep
// it has called itself.
//
// Threat: a script of nothing but "((((" or "${a:-${a:-" -> the parser calls
// itself for each, and Go ends the whole process when a stack is full -> the
// parser asks for the next kilobyte from the depth where it is, and gets an
// error instead when that is too deep -> what one kilobyte can add.
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
