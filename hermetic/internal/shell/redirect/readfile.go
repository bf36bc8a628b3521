package redirect

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// IsBinary reports whether the first line of a text has a NUL: then it is not a
// script.
func IsBinary(text string) bool {
	first, _, _ := strings.Cut(text[:min(len(text), 80)], "\n")
	return strings.IndexByte(first, 0) >= 0
}

// ReadFile reads a script. It ends the shell if the script exceeds the limit.
func ReadFile(sh *state.Shell, full string) (string, error) {
	f, err := open(sh, full, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return ReadScript(sh, stream.Bound{Ctx: sh.Ctx, File: f})
}

// ReadScript reads a script from r. It ends the shell if the script exceeds the
// limit.
func ReadScript(sh *state.Shell, r io.Reader) (string, error) {
	most := sh.Session.Budget.Limits.Source
	var b bytes.Buffer
	_, err := io.Copy(&b, io.LimitReader(r, most+1))
	if int64(b.Len()) > most {
		sh.Exceed(&limits.Exceeded{Name: "source", Limit: most, What: "bytes are in one script"})
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return b.String(), nil
}
