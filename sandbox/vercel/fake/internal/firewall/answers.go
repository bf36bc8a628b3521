package firewall

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// responseBody is an answer that the firewall itself gives.
type responseBody struct {
	StatusCode  int               `json:"statusCode"`
	Headers     map[string]string `json:"headers"`
	Body        *string           `json:"body"`
	ContentType string            `json:"contentType"`
}

func checkForward(text string) error {
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(text, "?#") {
		return reply.BadRequest("Invalid request: `forwardURL` should be an https URL without query and fragment.")
	}
	return nil
}

func checkResponse(raw json.RawMessage) error {
	var r responseBody
	if err := reply.DecodeBytes(raw, &r); err != nil {
		return err
	}
	switch {
	case r.StatusCode < 200 || r.StatusCode > 599:
		return reply.BadRequest("Invalid request: `response.statusCode` should be >= 200 and <= 599.")
	case r.Body != nil && slices.Contains([]int{204, 205, 304}, r.StatusCode):
		return reply.BadRequest("Invalid request: `response.body` should NOT be given with status %d.", r.StatusCode)
	case r.Body != nil && r.ContentType == "":
		return reply.BadRequest("Invalid request: `response` missing required property `contentType`.")
	}
	for k, v := range r.Headers {
		if !validHeader(k) || strings.ContainsAny(v, "\r\n\x00") || slices.Contains([]string{"connection", "content-length", "transfer-encoding"}, strings.ToLower(k)) {
			return reply.BadRequest("Invalid request: `response.headers` has an invalid header %q.", k)
		}
	}
	return nil
}

// firstError reports the first of errs that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
