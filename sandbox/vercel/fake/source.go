package fake

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// fetchLimit is how long a source may take to come.
const fetchLimit = 5 * time.Minute

// sourceError is what create answers when a source does not come.
func sourceError(err error) error {
	return reply.BadRequest("Could not fetch the source: %v.", err)
}

// cloneSource puts the repository that a create names into the working directory
// of a disk. It is fetched by this program and not inside, so that no policy
// applies to it.
func (s *Server) cloneSource(ses *session, src *sourceBody) error {
	if src == nil || src.Type != "git" {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, fetchLimit)
	defer cancel()
	if err := cloneGit(ctx, src, ses.disk.Outside(ses.cwd)); err != nil {
		return sourceError(err)
	}
	return ses.disk.Adopt(ses.cwd)
}

// unpackSource puts the archive that a create names into the working directory
// of a machine that runs.
func (s *Server) unpackSource(ses *session, src *sourceBody) error {
	if src == nil || src.Type != "tarball" {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, fetchLimit)
	defer cancel()
	if err := s.fetchTarball(ctx, src.URL, ses); err != nil {
		return sourceError(err)
	}
	return nil
}

// cloneGit makes a copy of a repository in dir. Credentials go to git in its
// environment, which other users cannot read.
func cloneGit(ctx context.Context, src *sourceBody, dir string) error {
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "git", args...) // #nosec: the arguments are checked or behind --
		cmd.Dir = dir
		cmd.Env = gitEnv(src)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git: %w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	if err := run("init", "--quiet"); err != nil {
		return err
	}
	revision := src.Revision
	if revision == "" {
		revision = "HEAD"
	}
	if strings.HasPrefix(revision, "-") {
		return fmt.Errorf("revision %q", revision)
	}
	fetch := []string{"fetch", "--quiet"}
	if src.Depth > 0 {
		fetch = append(fetch, "--depth", strconv.Itoa(src.Depth))
	}
	if err := run(append(fetch, "--", src.URL, revision)...); err != nil {
		return err
	}
	return run("checkout", "--quiet", "-B", "main", "FETCH_HEAD")
}

func gitEnv(src *sourceBody) []string {
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=http:https", "LC_ALL=C",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", // it is the machine's user's
	}
	if src.Username == "" {
		return append(env, "GIT_CONFIG_COUNT=1")
	}
	basic := base64.StdEncoding.EncodeToString([]byte(src.Username + ":" + src.Password))
	return append(env, "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=http.extraHeader", "GIT_CONFIG_VALUE_1=Authorization: Basic "+basic)
}

// fetchTarball unpacks an archive from an URL. Directories that all of it lies
// in are kept.
func (s *Server) fetchTarball(ctx context.Context, url string, ses *session) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return ses.m.Extract(ctx, ses.cwd, io.LimitReader(resp.Body, maxArchiveBytes))
}
