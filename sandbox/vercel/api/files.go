package api

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// MakeDir makes a directory. Without parents one that is there already, or
// without a parent, is an Error with CodeFileError; then an answer that was lost
// is not asked for again. cwd is what a relative name begins at; "": the
// session's.
func (c *Client) MakeDir(ctx context.Context, session, name, cwd string, parents bool) error {
	in := struct {
		Path      string `json:"path"`
		Cwd       string `json:"cwd,omitempty"`
		Recursive bool   `json:"recursive,omitempty"`
	}{name, cwd, parents}
	r := call{op: "make directory", method: http.MethodPost, in: &in}
	if parents {
		r.repeat = always
	}
	return c.session(ctx, r, session, "/fs/mkdir", &struct{}{})
}

// ReadFile opens a file of a session. One that is not there is fs.ErrNotExist.
// The caller closes it. A file that is cut short on the way ends in
// io.ErrUnexpectedEOF or another error, never in io.EOF; how large it should be
// the service does not say.
func (c *Client) ReadFile(ctx context.Context, session, name, cwd string) (io.ReadCloser, error) {
	const op = "read file"
	at, err := idPath("/v2/sandboxes/sessions/", "session id", session, "/fs/read")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	in := struct {
		Path string `json:"path"`
		Cwd  string `json:"cwd,omitempty"`
	}{name, cwd}
	r := call{op: op, method: http.MethodPost, path: at, in: &in, session: session, repeat: always, timeout: quietTime, slides: true}
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "application/octet-stream" {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, errorMax)) // a part of the words is better than none
		_ = resp.Body.Close()
		return nil, c.nonsense(r, resp, "the answer is not a file, but "+clip(resp.Header.Get("Content-Type"), 100), text)
	}
	return resp.Body, nil
}
