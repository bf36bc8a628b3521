package fake

import (
	"net/http"
	"slices"
	"strings"

	"egressd/sandbox/vercel/fake/internal/drives"
	"egressd/sandbox/vercel/fake/internal/reply"
)

// forkOrDrive answers POST {name}/fork and drives/{name}, which a ServeMux cannot
// tell apart.
func (s *Server) forkOrDrive(w http.ResponseWriter, r *http.Request) error {
	switch {
	case r.PathValue("name") == "drives":
		return s.makeDrive(w, r, r.PathValue("what"))
	case r.PathValue("what") == "fork":
		return s.forkSandbox(w, r)
	}
	return noSuchPath(s.mux, r)
}

func (s *Server) makeDrive(w http.ResponseWriter, r *http.Request, name string) error {
	var b struct {
		ProjectID    *string `json:"projectId"`
		Region       *string `json:"region"`
		MaxSizeBytes *int64  `json:"maxSizeBytes"`
	}
	if err := reply.Decode(r, &b); err != nil {
		return err
	}
	project, err := s.project(r, b.ProjectID)
	if err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return err
	}
	want := drives.Info{ID: driveID(), Name: name, ProjectID: project, Region: defaultRegion, MaxSizeBytes: drives.DefaultSize}
	if b.Region != nil {
		if want.Region = *b.Region; !slices.Contains(regions, want.Region) {
			return reply.BadRequest("Invalid request: region %q does not exist.", want.Region)
		}
	}
	if b.MaxSizeBytes != nil {
		if want.MaxSizeBytes = *b.MaxSizeBytes; want.MaxSizeBytes < 1 {
			return reply.BadRequest("Invalid request: `maxSizeBytes` should be >= 1.")
		}
	}
	d, err := s.drives.Open(want)
	if err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, map[string]any{"drive": d})
}

func (s *Server) listDrives(w http.ResponseWriter, r *http.Request) error {
	project, err := s.queryProject(r, "projectId")
	if err != nil {
		return err
	}
	p, err := reply.ParsePage(r)
	if err != nil {
		return err
	}
	by, prefix := r.URL.Query().Get("sortBy"), r.URL.Query().Get("namePrefix")
	switch {
	case by != "" && by != "name" && by != "createdAt":
		return reply.BadRequest("Invalid request: `sortBy` should be equal to one of the allowed values \"createdAt, name\".")
	case prefix != "" && by != "name":
		return reply.BadRequest("Invalid request: `namePrefix` needs `sortBy` to be \"name\".")
	}
	list := s.drives.List(project, prefix)
	if by == "name" {
		slices.SortFunc(list, func(a, b drives.Info) int { return strings.Compare(a.Name, b.Name) })
	}
	list, pagination := reply.Cut(p, list, func(d drives.Info) string { return d.Name })
	return reply.JSON(w, http.StatusOK, map[string]any{"drives": append([]drives.Info{}, list...), "pagination": pagination})
}

func (s *Server) deleteDrive(w http.ResponseWriter, r *http.Request) error {
	project, err := s.queryProject(r, "projectId")
	if err != nil {
		return err
	}
	d, err := s.drives.Delete(project, r.PathValue("name"))
	if err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, map[string]any{"drive": d})
}
