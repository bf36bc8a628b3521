package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"egressd/sandbox/vercel/fake/machine"
)

// apiError is an answer that is no success.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.message) }

func badRequest(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &apiError{http.StatusNotFound, "not_found", fmt.Sprintf(format, args...)}
}

// The errors of sessions that do not run.
var (
	errSandboxStopped  = &apiError{http.StatusGone, "sandbox_stopped", "Sandbox has stopped execution and is no longer available"}
	errSandboxStopping = &apiError{http.StatusUnprocessableEntity, "sandbox_stopping", "Sandbox is stopping."}
	errSnapshotting    = &apiError{http.StatusUnprocessableEntity, "sandbox_snapshotting", "Sandbox is creating a snapshot."}
	errSnapshotGone    = &apiError{http.StatusGone, "snapshot_not_found", "Snapshot not found."}
	errNoSnapshot      = &apiError{http.StatusBadRequest, "bad_request", "Cannot resume sandbox: no snapshot available."}
)

// asAPIError puts what went wrong in a handler into an answer.
func asAPIError(err error) *apiError {
	var api *apiError
	var inside *machine.Error
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &inside):
		return fromInside(inside)
	}
	return &apiError{http.StatusInternalServerError, "internal_server_error", err.Error()}
}

// fromInside is what a machine's errors are in the words of the API.
func fromInside(e *machine.Error) *apiError {
	switch e.Kind {
	case machine.NoProgram:
		name, _, _ := strings.Cut(e.Text, ": command not found")
		return &apiError{http.StatusBadRequest, "executable_not_found", "[invalid_argument] executable file not found in $PATH: " + name}
	case machine.NotExecutable:
		return &apiError{http.StatusBadRequest, "bad_request", "[permission_denied] " + e.Text}
	case machine.BadDirectory:
		return &apiError{http.StatusBadRequest, "bad_request", "[invalid_argument] " + e.Text}
	case machine.NotFound:
		return &apiError{http.StatusNotFound, "not_found", "File not found."}
	case machine.Stopped:
		return errSandboxStopped
	}
	return &apiError{http.StatusBadRequest, "file_error", e.Text}
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return ignoreWrite(enc.Encode(v))
}

// ignoreWrite drops the error of a client that has gone: nobody is left to tell.
func ignoreWrite(error) error { return nil }

// decode reads a JSON body into v. An empty one is {}. Fields that v does not
// have are schema errors, but for those that begin with two underscores, which
// are the SDK's own.
func decode(r *http.Request, v any) error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &apiError{http.StatusRequestEntityTooLarge, "request_entity_too_large", "The body is too large."}
		}
		return badRequest("Cannot read the body.")
	}
	return decodeBytes(data, v)
}

func decodeBytes(data []byte, v any) error {
	if len(strings.TrimSpace(string(data))) == 0 {
		data = []byte("{}")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return badRequest("Invalid JSON")
	}
	for name := range fields {
		if strings.HasPrefix(name, "__") {
			delete(fields, name)
		}
	}
	clean, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(clean)))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return badRequest("Invalid request: `%s` should be %s.", wrongType.Field, wrongType.Type)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return badRequest("Invalid request: should NOT have additional property `%s`.", strings.Trim(name, `"`))
	}
	var api *apiError
	if errors.As(err, &api) {
		return api
	}
	return badRequest("Invalid request: %v.", err)
}
