// Package orders is the command line of runs that a contract orders: launch contract
// writes one, launch run carries one out, launch runner claims them from a control
// plane.
//
//	commands = append(commands, orders.Commands(l)...)
package orders

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/receipt/format"
)

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands are launch contract, launch run and launch runner.
func Commands(l *run.Launcher) []cli.Command {
	return []cli.Command{
		{Name: "contract", Run: launcher{l}.contract, Flags: func() *flag.FlagSet { return new(contractOptions).flags() }},
		{Name: "run", Run: launcher{l}.run, Flags: func() *flag.FlagSet { return new(runOptions).flags() }},
		{Name: "runner", Run: launcher{l}.runner, Flags: func() *flag.FlagSet { return new(runnerOptions).flags() }},
	}
}

// untilSignal is a context that ends with the first signal that asks to end.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// maxFile bounds contracts and keys, in bytes.
const maxFile = 8 << 20

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", name, maxFile)
	}
	return text, err
}

// readPublic reads a public key in PEM.
func readPublic(name string) (string, error) {
	text, err := readFile(name)
	if err != nil {
		return "", err
	}
	key, err := format.DecodePublic(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return format.EncodePublic(key)
}

// secrets are the values of variables that a person named.
func (l launcher) secrets(names []string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range names {
		if values[name] = l.Getenv(name); values[name] == "" {
			return nil, fmt.Errorf("--secret %s: it is not set: export it, or leave the flag out", name)
		}
	}
	return values, nil
}

var errNew = errors.New("it exists already: remove it, or name another")
