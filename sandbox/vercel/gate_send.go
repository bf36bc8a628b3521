package vercel

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"egressd/sandbox/vercel/api"
)

// gateName is the file, beside the workspace on a disk that stays, with the gate of an
// earlier run. A gate is large, so what is there already is not sent again.
const gateName = ".launch-egressd"

// gateCheckTime bounds looking for it.
const gateCheckTime = 30 * time.Second

// takeGateScript copies the file $1, which should have $3 bytes and the digest $0, to
// $2, and succeeds if that is what the copy has. No more is read than that.
const takeGateScript = `set -e
[ -f "$1" ] && [ ! -L "$1" ]
head -c "$(($3+1))" -- "$1" >"$2"
chmod 700 -- "$2"
[ "$(sha256sum <"$2")" = "$0  -" ]`

// keepGateScript makes $1, whatever it was, a copy of $0. A link is replaced and not
// followed.
const keepGateScript = `cp -- "$0" "$0.new" && mv -fT -- "$0.new" "$1"`

// sendGate brings the gate to the name program, and rules.
//
// Threat: a program of an earlier run put another file in the kept one's place, or a
// link, a FIFO or something without end -> what runs is a copy in this run's own name,
// whose digest is compared after copying; anything else is sent anew. Left over: root
// there may replace sha256sum as it may replace a gate that was just sent; see package
// inside.
func (r *run) sendGate(ctx context.Context, program string, rules api.File) error {
	sent := []api.File{{Path: program, Mode: 0o700, Size: r.Gate.Size(), Open: r.Gate.Program}, rules}
	kept := r.beside(gateName)
	has, err := r.takeGate(ctx, kept, program)
	if err != nil {
		return err
	}
	if has {
		sent = sent[1:]
	}
	if err := r.Client.WriteFiles(ctx, r.session.id, slices.Values(sent), nil); err != nil || has || kept == "" {
		return err
	}
	_, err = r.ours(ctx, api.CommandRequest{Command: "sh", Args: []string{"-c", keepGateScript, program, kept}})
	var failed *commandError
	if errors.As(err, &failed) {
		return nil // it is sent again the next time
	}
	return err
}

// takeGate reports whether program is there now, from an earlier run. In any doubt it
// is not.
func (r *run) takeGate(ctx context.Context, kept, program string) (bool, error) {
	if kept == "" || !r.disk.reused {
		return false, nil
	}
	digest, err := r.Gate.Digest()
	if err != nil {
		return false, err
	}
	short, done := context.WithTimeout(ctx, gateCheckTime)
	defer done()
	args := []string{"-c", takeGateScript, digest, kept, program, strconv.FormatInt(r.Gate.Size(), 10)}
	_, err = r.ours(short, api.CommandRequest{Command: "sh", Args: args})
	var failed *commandError
	switch {
	case errors.As(err, &failed), short.Err() != nil && ctx.Err() == nil:
		return false, nil
	}
	return err == nil, err
}
