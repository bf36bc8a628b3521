package vercel

import (
	"context"
	"strconv"
	"syscall"
	"time"

	"egressd/sandbox/vercel/api"
)

// markVariable is a variable of the program whose value is this run's alone. What
// the program starts has it, too.
const markVariable = "LAUNCH_RUN"

// Times of a signal.
const (
	killTime  = 15 * time.Second // of one request to kill
	groupTime = 3 * time.Second  // of the command that signals a group
)

// groupScript sends the signal with the number $1 to a program and to those of
// its process group that it has started, as a terminal does. It finds them by the
// variable with the value $0: the first to have it is the program. Its exit code
// is 3 when there is none.
const groupScript = `own= all= start=
for f in $(grep -slF "` + markVariable + `=$0" /proc/[0-9]*/environ); do p=${f#/proc/}; own="$own ${p%/environ}"; done
for p in $own; do
	read -r s 2>/dev/null </proc/$p/stat || continue
	set -- "$1" ${s##*) }
	if [ -z "$start" ] || [ "${21}" -lt "$start" ]; then start=${21} group=$4; fi
done
for p in $own; do
	read -r s 2>/dev/null </proc/$p/stat || continue
	set -- "$1" ${s##*) }
	if [ "$4" = "$group" ]; then all="$all $p"; fi
done
[ -n "$all" ] || exit 3
kill -"$1" $all 2>/dev/null
:`

// kill sends a signal to the program, also when ctx has ended.
//
// The service signals one process. A shell that waits for a child does not heed an
// interrupt before the child has ended, so the group gets it, by a command; where
// that does not find it (no /proc, a program that cleared its environment) the
// service does what it can. SIGKILL is the service's in any case. Left over: what
// runs as root.
func (r *run) kill(ctx context.Context, id string, sig syscall.Signal) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer done()
	err := r.signalGroup(ctx, sig)
	if err == nil && sig != syscall.SIGKILL || api.IsGone(err) {
		return
	}
	if _, err := r.Client.Kill(ctx, r.session.id, id, sig); err != nil && !api.IsGone(err) {
		r.log().Warn("the program could not be killed; its sandbox is stopped", "command", id, "error", err)
	}
}

// signalGroup is nil when the group was found.
func (r *run) signalGroup(ctx context.Context, sig syscall.Signal) error {
	ctx, done := context.WithTimeout(ctx, groupTime)
	defer done()
	_, err := r.ours(ctx, api.CommandRequest{Command: "sh", Args: []string{"-c", groupScript, r.mark, strconv.Itoa(int(sig))}, Cwd: "/"})
	return err
}
