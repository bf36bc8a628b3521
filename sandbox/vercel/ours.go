package vercel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"egressd/sandbox/vercel/api"
)

// temporary is the name of a file of ours in the sandbox.
func (r *run) temporary(what string) string {
	return "/tmp/.launch-" + strings.ToLower(r.Session) + "-" + what
}

// tidy removes those files from a disk that stays.
func (r *run) tidy(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, stopTime)
	defer done()
	request := api.CommandRequest{Command: "sh", Args: []string{"-c", `rm -f -- "$0"*`, r.temporary("")}, Sudo: r.disk.sudo}
	if _, err := r.ours(ctx, request); err != nil && !api.IsGone(err) {
		r.log().Info("files of this run stay in the sandbox", "files", r.temporary("*"), "error", err)
	}
}

// commandError is the failure of a command of ours.
type commandError struct {
	name, words string
	code        int
}

func (e *commandError) Error() string {
	return fmt.Sprintf("%s: exit status %d: %s", e.name, e.code, e.words)
}

// Bounds of commands of ours.
const (
	maxWords = 4 << 10 // bytes that are kept of each output
	ourTries = 3
)

// ours runs a command of ours and reports what it printed. Its error is a
// *commandError when it did not succeed. A command whose outcome is unknown is
// run again: each of ours may safely run twice.
func (r *run) ours(ctx context.Context, request api.CommandRequest) (printed string, err error) {
	for try := 1; ; try++ {
		var out, errs bytes.Buffer
		ended, err := r.Client.Run(ctx, r.session.id, request, nil, func(stream string, data []byte) error {
			to := &out
			if stream == "stderr" {
				to = &errs
			}
			to.Write(data[:min(len(data), maxWords-to.Len())])
			return nil
		})
		var unknown *api.UnknownOutcomeError
		if errors.As(err, &unknown) && !api.IsGone(err) && try < ourTries && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", request.Command, err)
		}
		if code := int(*ended.ExitCode); code != 0 {
			return out.String(), &commandError{request.Command, strings.TrimSpace(errs.String()), code}
		}
		return out.String(), nil
	}
}
