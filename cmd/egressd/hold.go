package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"egressd/internal/cli"
)

// hold waits for a signal. A container that owns a network namespace which others
// share has to: the namespace would end with it. It waits without the capabilities
// that installing the rules needed.
func (p *program) hold() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := dropCapabilities(); err != nil {
		return p.Fail(cli.ExitNo, errors.Join(errors.New("--hold would stay with its capabilities"), err))
	}
	<-ctx.Done()
	return cli.ExitOK
}
