package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"egressd/gate"
	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/microvm"
	"egressd/internal/run/script"
	"egressd/sandbox"
)

// readProxyVariables takes the caller's proxy variables for the upstream proxy, unless
// flags say otherwise or somebody else leaves for the program.
func (s *session) readProxyVariables() error {
	o := s.opts
	if o.Policy.Upstream.URL != "" || o.Daemon != "" || o.Tier == microvm.Tier {
		return nil
	}
	env, err := policyflags.ReadEnviron(s.Getenv, s.Getenv(sandbox.Marker) != "")
	if err != nil {
		return err
	}
	o.Policy.Environ = env
	return nil
}

// upstream checks that the upstream proxy can be used, hides its login from the program
// and says through which proxy traffic leaves.
func (s *session) upstream() error {
	u := s.policy.Upstream()
	env := &s.opts.Policy.Environ
	if u == nil {
		*env = policyflags.Environ{}
		return nil
	}
	if s.opts.Daemon != "" {
		return errors.New("an upstream proxy has no effect with --egressd, which leaves by itself: take upstream_proxy out of the policy, or --upstream-proxy off the command line")
	}
	section := env.Section
	fromEnv := section.URL != "" && strings.Contains(section.URL, u.String())
	if !fromEnv {
		env.Login = ""
	}
	if _, err := gate.Upstream(env.Login, s.authorities())(u); err != nil {
		return err
	}
	if _, err := s.login(); err != nil {
		return err
	}
	if s.opts.Report.Quiet || s.opts.Policy.Upstream.URL != "" {
		return nil
	}
	where := "upstream_proxy"
	if fromEnv {
		where = env.Name
	}
	s.Say("launch: traffic leaves through the proxy %s (%s); --upstream-proxy none goes without it\n", cli.Safe(u.String()), where)
	if fromEnv && len(env.Unknown) > 0 {
		s.Say("launch: NO_PROXY: %s cannot be read, and is not bypassed: --upstream-bypass says it\n", cli.Safe(strings.Join(env.Unknown, ", ")))
	}
	return nil
}

// login is the file with the login for the upstream proxy, absolute; "": there is none.
//
// Threat: the program reads the company's password where the person put it -> the file
// is hidden as credentials are; a tier that hides no files refuses one in its working
// directory. Left over: --isolation env, where a program reads what its user can.
func (s *session) login() (string, error) {
	u := s.policy.Upstream()
	if u == nil || u.Credentials == "" {
		return "", nil
	}
	path, err := filepath.Abs(u.Credentials)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("the login for the upstream proxy: %w", err)
	}
	if s.opts.Tier == script.Tier {
		dir, err := filepath.Abs(s.opts.Program.Dir)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if rel, relErr := filepath.Rel(dir, path); err != nil || relErr == nil && filepath.IsLocal(rel) {
			return "", fmt.Errorf("%s: the script could read the login for the upstream proxy in its working directory: move it elsewhere", u.Credentials)
		}
	}
	return path, nil
}
