package microvm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/sandbox/vercel/api/account"
)

// Files of the service's own tools, below the workspace.
const (
	linkFile = ".vercel/project.json" // of vercel link
	envFile  = ".env.local"           // of vercel env pull
)

// sources are the places of credentials, in the order of docs/vercel.md.
func (o *Options) sources(p *cli.Program) (account.Sources, error) {
	var s account.Sources
	if o.TokenFile != "" {
		text, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return s, fmt.Errorf("--vercel-token-file: %w", err)
		}
		if s.Tokens = append(s.Tokens, account.Place{Name: "--vercel-token-file", Token: string(text)}); strings.TrimSpace(string(text)) == "" {
			return s, errors.New("--vercel-token-file: the file is empty")
		}
	}
	for _, name := range []string{"SANDBOX_VERCEL_TOKEN", "VERCEL_TOKEN", "VERCEL_OIDC_TOKEN"} {
		s.Tokens = append(s.Tokens, account.Place{Name: name, Token: p.Getenv(name), OIDC: name == "VERCEL_OIDC_TOKEN"})
	}
	s.TeamIDs = []string{o.Team, p.Getenv("SANDBOX_VERCEL_TEAM_ID"), p.Getenv("VERCEL_TEAM_ID")}
	s.ProjectIDs = []string{o.Project, p.Getenv("SANDBOX_VERCEL_PROJECT_ID"), p.Getenv("VERCEL_PROJECT_ID")}
	pulled, err := variable(o.at(envFile), "VERCEL_OIDC_TOKEN")
	if err != nil {
		return s, err
	}
	login, err := login(p)
	if err != nil {
		return s, err
	}
	s.Tokens = append(s.Tokens, account.Place{Name: envFile, Token: pulled, OIDC: true, Weak: true}, login)
	var link struct {
		Project string `json:"projectId"`
		Team    string `json:"orgId"`
	}
	if err := readJSON(o.at(linkFile), &link); err != nil {
		return s, err
	}
	s.LinkProjectID, s.LinkTeamID = link.Project, link.Team
	return s, nil
}

// at is a file of the workspace.
func (o *Options) at(name string) string { return filepath.Join(o.Workspace, filepath.FromSlash(name)) }

// login is what the service's own command line is logged in with.
func login(p *cli.Program) (account.Place, error) {
	const name = "the login of the vercel command line"
	data := p.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home := p.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return account.Place{Name: name}, nil
		}
		data = filepath.Join(home, ".local", "share")
		if runtime.GOOS == "darwin" {
			data = filepath.Join(home, "Library", "Application Support")
		}
	}
	var auth struct {
		Token   string `json:"token"`
		Expires int64  `json:"expiresAt"` // seconds since 1970; 0: never
	}
	if err := readJSON(filepath.Join(data, "com.vercel.cli", "auth.json"), &auth); err != nil {
		return account.Place{}, err
	}
	at := account.Place{Name: name, Token: auth.Token, Weak: true}
	if auth.Expires > 0 {
		at.Expires = time.Unix(auth.Expires, 0)
	}
	return at, nil
}

// fileMax bounds a file of the service's tools, in bytes.
const fileMax = 1 << 20

// readSmall reads a file; one that is not there, or that this user may not read,
// is empty.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(text) > fileMax {
		err = fmt.Errorf("%s is larger than 1 MiB", cli.Safe(name))
	}
	return text, err
}

func readJSON(name string, into any) error {
	text, err := readSmall(name)
	if err != nil || len(text) == 0 {
		return err
	}
	if json.Unmarshal(text, into) != nil { // its text may hold a token
		return fmt.Errorf("%s is not the JSON that was expected", cli.Safe(name))
	}
	return nil
}

// variable finds a variable in a file of NAME=VALUE lines; "" if it is not there.
func variable(file, name string) (string, error) {
	text, err := readSmall(file)
	value := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		key, v, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != name {
			continue
		}
		v = strings.TrimSpace(v)
		if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
			v = v[1 : len(v)-1]
		}
		value = v // the last one counts, as in a shell
	}
	return value, err
}
