package fake

import (
	"io"
	"net/http"
	"path"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// maxArchiveBytes bounds an upload as it is sent.
const maxArchiveBytes = 1 << 30

func (s *Server) writeFiles(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	if got := r.Header.Get("Content-Type"); got != "application/gzip" {
		return reply.BadRequest("Invalid request: content type %q, want application/gzip.", got)
	}
	dir := r.Header.Get("X-Cwd")
	if dir == "" {
		dir = ses.cwd
	} else if !path.IsAbs(dir) {
		dir = path.Join(ses.cwd, dir)
	}
	if err := ses.m.Extract(r.Context(), dir, http.MaxBytesReader(w, r.Body, maxArchiveBytes)); err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, struct{}{})
}

// fileBody is the body of fs/read and fs/mkdir.
type fileBody struct {
	Path      string `json:"path"`
	Cwd       string `json:"cwd"`
	Recursive bool   `json:"recursive"`
}

// fileRequest reads such a body, and the directory that its path starts from.
func (s *Server) fileRequest(r *http.Request) (*session, fileBody, error) {
	var b fileBody
	ses, err := s.running(r)
	if err != nil {
		return nil, b, err
	}
	if err := reply.Decode(r, &b); err != nil {
		return nil, b, err
	}
	if b.Path == "" || strings.Contains(b.Path+b.Cwd, "\x00") {
		return nil, b, reply.BadRequest("Invalid request: missing required property `path`.")
	}
	switch {
	case b.Cwd == "":
		b.Cwd = ses.cwd
	case !path.IsAbs(b.Cwd):
		b.Cwd = path.Join(ses.cwd, b.Cwd)
	}
	return ses, b, nil
}

// quoted escapes what ends a quoted string, RFC 9110 section 5.6.4.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "_", "\r", "_")

func (s *Server) readFile(w http.ResponseWriter, r *http.Request) error {
	ses, b, err := s.fileRequest(r)
	if err != nil {
		return err
	}
	f, err := ses.m.Open(r.Context(), b.Cwd, b.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+quoted.Replace(path.Base(b.Path))+`"`)
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil { // chunked: no length is sent
		return reply.IgnoreWrite(err)
	}
	_, err = io.Copy(w, f)
	return reply.IgnoreWrite(err)
}

func (s *Server) mkdir(w http.ResponseWriter, r *http.Request) error {
	ses, b, err := s.fileRequest(r)
	if err != nil {
		return err
	}
	if err := ses.m.Mkdir(r.Context(), b.Cwd, b.Path, b.Recursive); err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, struct{}{})
}
