package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// createBody is the body of create and fork, and in part of update.
type createBody struct {
	ProjectID          *string            `json:"projectId"`
	Name               *string            `json:"name"`
	Ports              *[]int             `json:"ports"`
	Timeout            *int64             `json:"timeout"`
	Resources          *resourcesBody     `json:"resources"`
	Runtime            *string            `json:"runtime"`
	Image              *string            `json:"image"`
	Source             *sourceBody        `json:"source"`
	Persistent         *bool              `json:"persistent"`
	NetworkPolicy      json.RawMessage    `json:"networkPolicy"`
	NetworkID          json.RawMessage    `json:"networkId"`
	Env                *map[string]string `json:"env"`
	Tags               *map[string]string `json:"tags"`
	SnapshotExpiration *int64             `json:"snapshotExpiration"`
	KeepLastSnapshots  json.RawMessage    `json:"keepLastSnapshots"`
	Region             *string            `json:"region"`
	FailoverRegions    *[]string          `json:"failoverRegions"`
	Mounts             json.RawMessage    `json:"mounts"`
	CurrentSnapshotID  *string            `json:"currentSnapshotId"` // update alone
}

type resourcesBody struct {
	VCPUs  *int `json:"vcpus"`
	Memory *int `json:"memory"`
}

type sourceBody struct {
	Type       string `json:"type"`
	URL        string `json:"url"`
	Depth      int    `json:"depth"`
	Revision   string `json:"revision"`
	Username   string `json:"username"`
	Password   string `json:"password"`
	SnapshotID string `json:"snapshotId"`
}

// check returns what is invalid in a source.
func (b *sourceBody) check() error {
	if b == nil {
		return nil
	}
	switch b.Type {
	case "snapshot":
		if b.SnapshotID == "" {
			return reply.BadRequest("Invalid request: `source` missing required property `snapshotId`.")
		}
		return nil
	case "git", "tarball":
	default:
		return reply.BadRequest("Invalid request: `source.type` should be equal to one of the allowed values \"git, tarball, snapshot\".")
	}
	u, err := url.Parse(b.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return reply.BadRequest("Invalid request: `source.url` should be an http or https URL.")
	}
	if (b.Username == "") != (b.Password == "") {
		return reply.BadRequest("Invalid request: `source.username` and `source.password` belong together.")
	}
	if b.Depth < 0 {
		return reply.BadRequest("Invalid request: `source.depth` should be >= 1.")
	}
	return nil
}

func checkName(name string) error {
	if len(name) > maxNameBytes || !validName(name) {
		return reply.BadRequest("Invalid request: `name` should match pattern %q and NOT be longer than %d characters.", namePattern, maxNameBytes)
	}
	return nil
}

func (s *Server) createSandbox(w http.ResponseWriter, r *http.Request) error {
	var b createBody
	if err := reply.Decode(r, &b); err != nil {
		return err
	}
	project, err := s.project(r, b.ProjectID)
	if err != nil {
		return err
	}
	set := defaultSettings()
	if b.CurrentSnapshotID != nil {
		return reply.BadRequest("Invalid request: should NOT have additional property `currentSnapshotId`.")
	}
	if err := b.Source.check(); err != nil {
		return err
	}
	if err := set.mergeImage(&b, strings.HasPrefix(r.URL.Path, "/v3/")); err != nil {
		return err
	}
	if err := set.merge(&b); err != nil {
		return err
	}
	if err := s.findImage(set.image); err != nil {
		return err
	}
	from, err := s.sourceSnapshot(project, b.Source)
	if err != nil {
		return err
	}
	if from != nil {
		set.runtime, set.image, set.legacy = from.runtime, from.image, from.legacy
	}
	return s.makeSandbox(w, key{project, nameOf(&b)}, set, from, b.Source)
}

func nameOf(b *createBody) string {
	if b.Name == nil {
		return generatedName()
	}
	return *b.Name
}

// makeSandbox registers a sandbox, boots its first session and answers.
func (s *Server) makeSandbox(w http.ResponseWriter, k key, set settings, from *snapshot, src *sourceBody) error {
	if err := checkName(k.name); err != nil {
		return err
	}
	s.mu.Lock()
	if s.sandboxes[k] != nil {
		s.mu.Unlock()
		return reply.NewError(http.StatusConflict, "conflict", fmt.Sprintf("Named sandbox '%s' already exists for this project.", k.name))
	}
	if len(s.sandboxes) >= maxSandboxes {
		s.mu.Unlock()
		return reply.NewError(http.StatusTooManyRequests, "resource_limit_exceeded", "There are too many sandboxes.")
	}
	b := s.newBox(k, set)
	ses, err := s.newSession(b, from)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.sandboxes[k] = b
	s.mu.Unlock()
	if err := s.startSession(ses, from, src); err != nil {
		s.mu.Lock()
		delete(s.sandboxes, k)
		s.mu.Unlock()
		return err
	}
	s.mu.Lock()
	a := answer{Sandbox: b.begun(), Session: ses.json(), Routes: ses.routesJSON()}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, a)
}
