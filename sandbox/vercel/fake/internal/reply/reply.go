// Package reply reads JSON requests and writes JSON answers and errors the way
// the hosted API does. A handler decodes its body and answers:
//
//	var body createBody
//	if err := reply.Decode(r, &body); err != nil {
//		return err // an *Error, written by the caller
//	}
//	return reply.JSON(w, http.StatusOK, made)
package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// MaxBodyBytes bounds a JSON body. Archives have a bound of their own.
const MaxBodyBytes = 4 << 20

// Error is an answer other than a success: the HTTP status, and the code and
// message of its JSON envelope.
type Error struct {
	Status  int
	Code    string
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// NewError returns an *Error.
func NewError(status int, code, message string) *Error { return &Error{status, code, message} }

// BadRequest returns an *Error with status 400 and a formatted message.
func BadRequest(format string, args ...any) error {
	return &Error{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

// NotFound returns an *Error with status 404 and a formatted message.
func NotFound(format string, args ...any) error {
	return &Error{http.StatusNotFound, "not_found", fmt.Sprintf(format, args...)}
}

// JSON answers with the status and v as JSON. Its error is always nil: see
// [IgnoreWrite].
func JSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return IgnoreWrite(enc.Encode(v))
}

// IgnoreWrite drops the error of a write to a client: the client has gone, so
// nobody would read an error answer.
func IgnoreWrite(error) error { return nil }

// Decode reads the JSON body of r, at most [MaxBodyBytes], into v. The error is
// an *[Error]. An empty body is {}. A field that v does not have is an error,
// unless its name begins with two underscores: those are private to the SDK.
func Decode(r *http.Request, v any) error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBodyBytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &Error{http.StatusRequestEntityTooLarge, "request_entity_too_large", "The body is too large."}
		}
		return BadRequest("Cannot read the body.")
	}
	return DecodeBytes(data, v)
}

// DecodeBytes is [Decode] for data that has been read.
func DecodeBytes(data []byte, v any) error {
	if len(strings.TrimSpace(string(data))) == 0 {
		data = []byte("{}")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return BadRequest("Invalid JSON")
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
		return BadRequest("Invalid request: `%s` should be %s.", wrongType.Field, wrongType.Type)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return BadRequest("Invalid request: should NOT have additional property `%s`.", strings.Trim(name, `"`))
	}
	var api *Error
	if errors.As(err, &api) {
		return api
	}
	return BadRequest("Invalid request: %v.", err)
}
