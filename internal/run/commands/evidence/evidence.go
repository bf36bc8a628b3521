// Package evidence is the command line of signed records: launch verify checks one,
// launch attest says the same in the forms that others read.
//
//	commands = append(commands, evidence.Commands(l)...)
package evidence

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/receipt"
)

// Bounds of what is read, in bytes.
const (
	maxBundle   = 1 << 30
	maxEnvelope = 64 << 20
)

var errNew = errors.New("it exists already: remove it, or name another")

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands are launch verify and launch attest.
func Commands(l *run.Launcher) []cli.Command {
	return []cli.Command{
		{Name: "verify", Run: launcher{l}.verify, Flags: func() *flag.FlagSet { return new(verifyOptions).flags() }},
		{Name: "attest", Run: launcher{l}.attest, Flags: func() *flag.FlagSet { return new(attestOptions).flags() }},
	}
}

// good reads a bundle and verifies it; false: what is wrong has been said.
func (l launcher) good(name string, o receipt.Options) ([]byte, receipt.Facts, bool) {
	text, err := read(name, maxBundle)
	if err != nil {
		l.Fail(cli.ExitNo, err)
		return nil, receipt.Facts{}, false
	}
	if problems := receipt.Verify(text, o); len(problems) > 0 {
		for _, p := range problems {
			l.Say("%s: %s\n", cli.Safe(name), cli.Safe(p))
		}
		return nil, receipt.Facts{}, false
	}
	facts, err := receipt.Read(text)
	if err != nil {
		l.Fail(cli.ExitNo, err)
	}
	return text, facts, err == nil
}

func read(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is longer than %d bytes", name, most)
	}
	return text, err
}

// write makes a new file.
func write(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s: %w", name, errNew)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}
