package fetch

import (
	"bytes"
	"errors"
	"io"

	"egressd/hermetic/command"
)

// ErrMemory is more than a command may hold.
var ErrMemory = errors.New("out of memory")

// MostHeld is how many bytes of one file or option a command may hold.
func MostHeld(c *command.Call) int64 { return c.Budget.Limits.Memory / 8 }

// Slurp reads a file or, for "-", the standard input.
func Slurp(c *command.Call, name string) ([]byte, error) {
	r := c.Stdin
	if name != "-" {
		f, err := c.FS.Open(c.Path(name))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, MostHeld(c)+1))
	if n > MostHeld(c) {
		return nil, ErrMemory
	}
	return b.Bytes(), err
}
