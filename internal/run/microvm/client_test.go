package microvm

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/internal/cli"
	"egressd/internal/run/records"
)

// token is a JWT of team_o and a project that ends then; zero: never.
func token(project string, ends time.Time) string {
	claims := fmt.Sprintf(`{"owner_id":"team_o","project_id":%q`, project)
	if !ends.IsZero() {
		claims += fmt.Sprintf(`,"exp":%d`, ends.Unix())
	}
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims+"}")) + ".c2ln"
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Credentials come from where the service's own tools keep them, in the order of
// docs/vercel.md; a broken file is an error that does not show its text.
func TestClient(t *testing.T) {
	fresh, old := token("prj_env", time.Now().Add(time.Hour)), token("prj_env", time.Now().Add(-time.Hour))
	link := `{"projectId":"prj_link","orgId":"team_link"}`
	login := `{"token":"cli","expiresAt":` + fmt.Sprint(time.Now().Add(time.Hour).Unix()) + `}`
	for _, tt := range []struct {
		name             string
		env              []string
		link, pull, auth string
		want             string // token's place, team, project
	}{
		{"the environment first", []string{"VERCEL_TOKEN=x", "VERCEL_PROJECT_ID=p", "VERCEL_TEAM_ID=t"}, link, "VERCEL_OIDC_TOKEN=" + fresh, login, "VERCEL_TOKEN t p"},
		{"SANDBOX_ before it", []string{"VERCEL_TOKEN=x", "SANDBOX_VERCEL_TOKEN=y", "SANDBOX_VERCEL_PROJECT_ID=sp", "VERCEL_PROJECT_ID=p", "SANDBOX_VERCEL_TEAM_ID=st"}, "", "", "", "SANDBOX_VERCEL_TOKEN st sp"},
		{"a token, and a link", []string{"VERCEL_TOKEN=x"}, link, "", "", "VERCEL_TOKEN team_link prj_link"},
		{"vercel env pull", nil, link, "# made by\nA=b\nVERCEL_OIDC_TOKEN=\"" + fresh + "\"\n", login, ".env.local team_o prj_env"},
		{"the login, and a link", nil, link, "", login, "the login of the vercel command line team_link prj_link"},
		{"what was pulled has expired", nil, link, "export VERCEL_OIDC_TOKEN='" + old + "'", login, "the login of the vercel command line team_link prj_link"},
		{"and there is no login", nil, link, "VERCEL_OIDC_TOKEN=" + old, "", "has expired at * (.env.local)"},
		{"an expired login", nil, link, "", `{"token":"cli","expiresAt":1}`, "has expired at 1970"},
		{"a login alone", nil, "", "", login, "set VERCEL_PROJECT_ID"},
		{"nothing", nil, "", "", "", "no credentials"},
		{"a broken link", []string{"VERCEL_TOKEN=x"}, "{SECRET", "", "", "project.json is not the JSON"},
		{"a broken login", nil, link, "", "{SECRET", "auth.json is not the JSON"},
		{"a huge file", nil, link, strings.Repeat("x", fileMax+1), "", ".env.local is larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, ws := t.TempDir(), t.TempDir()
			for name, text := range map[string]string{
				filepath.Join(ws, ".vercel/project.json"): tt.link, filepath.Join(ws, ".env.local"): tt.pull,
				filepath.Join(home, "com.vercel.cli/auth.json"): tt.auth,
			} {
				if text != "" {
					write(t, name, text)
				}
			}
			o := Options{Workspace: ws}
			c, err := o.Client(&cli.Program{Environ: append(tt.env, "XDG_DATA_HOME="+home)}, nil, nil)
			got := ""
			if err != nil {
				got = err.Error()
				if strings.Contains(got, "SECRET") {
					t.Error(got)
				}
			} else {
				got = c.From + " " + c.TeamID + " " + c.ProjectID
			}
			for part := range strings.SplitSeq(tt.want, "*") {
				if !strings.Contains(got, part) || err == nil && got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}

// A program that puts a token of its own into the workspace does not lead the next
// run to its account.
func TestVouched(t *testing.T) {
	ws, dir := t.TempDir(), filepath.Join(t.TempDir(), "records")
	open := func() (*records.Store, error) { return records.Open(dir, nil) }
	said := ""
	try := func(project string) error {
		write(t, filepath.Join(ws, ".env.local"), "VERCEL_OIDC_TOKEN="+token(project, time.Time{}))
		o := Options{Workspace: ws}
		_, err := o.Client(&cli.Program{}, nil, o.Vouched(open, func(text string) { said += text }))
		return err
	}
	if err := try("prj_mine"); err != nil || !strings.Contains(said, "team_o/prj_mine") {
		t.Fatalf("%v, said %q", err, said)
	}
	said = ""
	if err := try("prj_mine"); err != nil || said != "" {
		t.Errorf("%v, said %q", err, said)
	}
	for range 2 {
		if err := try("prj_evil"); err == nil || !strings.Contains(err.Error(), "names team_o/prj_evil, and named team_o/prj_mine before") {
			t.Errorf("%v, said %q", err, said)
		}
	}
	if err := try("prj_mine"); err != nil {
		t.Error(err)
	}
}

// A disk begins with one source.
func TestSources(t *testing.T) {
	var o Options
	if err := o.setSource("snapshot:a"); err != nil {
		t.Fatal(err)
	}
	if err := o.setSource("snapshot:b"); err == nil || o.source != "snapshot:a" {
		t.Errorf("%v %q", err, o.source)
	}
}

// A profile is a size for what no flag says, and says when it does not fit.
func TestProfile(t *testing.T) {
	for _, tt := range []struct {
		profile, name string
		vcpus, want   int // -1: refused
	}{
		{"", "", 0, 0},
		{"ephemeral", "", 0, 1},
		{"ephemeral", "", 8, 8},
		{"ephemeral", "dev", 0, -1},
		{"coding-agent", "dev", 0, 2},
		{"coding-agent", "", 0, -1},
		{"large", "dev", 0, -1},
	} {
		o := Options{Profile: tt.profile}
		o.VCPUs = tt.vcpus
		if err := o.Validate(tt.name); err != nil && tt.want >= 0 || err == nil && o.VCPUs != tt.want {
			t.Errorf("%+v: %d, %v", tt, o.VCPUs, err)
		}
	}
}
