package fake

import (
	"errors"
	"net/http"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

// The errors of sessions that do not run.
var (
	errSandboxStopped  = reply.NewError(http.StatusGone, "sandbox_stopped", "Sandbox has stopped execution and is no longer available")
	errSandboxStopping = reply.NewError(http.StatusUnprocessableEntity, "sandbox_stopping", "Sandbox is stopping.")
	errSnapshotting    = reply.NewError(http.StatusUnprocessableEntity, "sandbox_snapshotting", "Sandbox is creating a snapshot.")
	errSnapshotGone    = reply.NewError(http.StatusGone, "snapshot_not_found", "Snapshot not found.")
	errNoSnapshot      = reply.NewError(http.StatusBadRequest, "snapshot_not_found", "Cannot resume sandbox: no snapshot available.")
)

// asAPIError puts what went wrong in a handler into an answer.
func asAPIError(err error) *reply.Error {
	var api *reply.Error
	var inside *machine.Error
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &inside):
		return fromInside(inside)
	}
	return reply.NewError(http.StatusInternalServerError, "internal_server_error", err.Error())
}

// fromInside is what a machine's errors are in the words of the API.
func fromInside(e *machine.Error) *reply.Error {
	switch e.Kind {
	case machine.NoProgram:
		name, _, _ := strings.Cut(e.Text, ": command not found")
		return reply.NewError(http.StatusBadRequest, "executable_not_found", "[invalid_argument] executable file not found in $PATH: "+name)
	case machine.NotExecutable:
		return reply.NewError(http.StatusBadRequest, "bad_request", "[permission_denied] "+e.Text)
	case machine.BadDirectory:
		return reply.NewError(http.StatusBadRequest, "bad_request", "[invalid_argument] "+e.Text)
	case machine.NotFound:
		return reply.NewError(http.StatusNotFound, "not_found", "File not found.")
	case machine.Stopped:
		return errSandboxStopped
	}
	return reply.NewError(http.StatusBadRequest, "file_error", e.Text)
}
