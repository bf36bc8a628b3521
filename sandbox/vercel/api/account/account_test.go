package account

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestResolve(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	oidc := jwt(`{"owner_id":"team_o","project_id":"prj_o","iat":1789990000,"exp":1790000001}`)
	for _, tt := range []struct {
		name string
		s    Sources
		want string // token, team, project; "" is an error
		err  string
	}{
		{"flags", Sources{Token: "f", TeamID: "t", ProjectID: "p", EnvToken: "e", EnvTeamID: "et", EnvProjectID: "ep"}, "f t p", ""},
		{"the environment", Sources{EnvToken: "e", EnvTeamID: "et", EnvProjectID: "ep", EnvOIDCToken: oidc}, "e et ep", ""},
		{"a flag for one of them", Sources{EnvToken: "e", EnvProjectID: "ep", ProjectID: "p"}, "e  p", ""},
		{"OIDC", Sources{EnvOIDCToken: oidc}, oidc + " team_o prj_o", ""},
		{"OIDC and a project", Sources{EnvOIDCToken: oidc, EnvProjectID: "ep"}, oidc + " team_o ep", ""},
		{"OIDC knows its team", Sources{EnvOIDCToken: oidc, TeamID: "t"}, oidc + " team_o prj_o", ""},
		{"OIDC by the flag", Sources{Token: oidc}, oidc + " team_o prj_o", ""},
		{"OIDC without an end", Sources{EnvOIDCToken: jwt(`{"owner_id":"o","project_id":"p"}`)}, jwt(`{"owner_id":"o","project_id":"p"}`) + " o p", ""},
		{"nothing", Sources{}, "", "set VERCEL_TOKEN or VERCEL_OIDC_TOKEN"},
		{"a token alone", Sources{EnvToken: "e"}, "", "set VERCEL_PROJECT_ID"},
		{"expired", Sources{EnvOIDCToken: jwt(`{"owner_id":"o","project_id":"p","exp":1790000000}`)}, "", "has expired at 2026-09-21T"},
		{"OIDC that is no JWT", Sources{EnvOIDCToken: "x", EnvProjectID: "p"}, "", "does not name"},
		{"OIDC without a team", Sources{EnvOIDCToken: jwt(`{"project_id":"p"}`)}, "", "does not name"},
		{"a token with a line break", Sources{EnvToken: "a\nb", EnvProjectID: "p"}, "", "character"},
	} {
		c, err := tt.s.Resolve(now)
		got := c.Token + " " + c.TeamID + " " + c.ProjectID
		if tt.want == "" {
			if err == nil || c != (Credentials{}) || !strings.Contains(err.Error(), strings.ReplaceAll(tt.err, "does not name", "owner_id")) {
				t.Errorf("%s: %v %v", tt.name, c, err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("%s: %q %v", tt.name, got, err)
		}
	}
	c, _ := Sources{EnvOIDCToken: oidc}.Resolve(now)
	if !c.OIDC || c.Expires.Unix() != 1790000001 {
		t.Errorf("expires %v", c.Expires)
	}
	var missing *MissingError
	if _, err := (Sources{}).Resolve(now); !errors.As(err, &missing) {
		t.Error(err)
	}
}

func TestPrinted(t *testing.T) {
	s := Sources{Token: "SECRET", EnvToken: "SECRET", EnvOIDCToken: "SECRET"}
	c := Credentials{Token: "SECRET"}
	if all := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", s, s, s, s, c, c, c); strings.Contains(all, "SECRET") {
		t.Error(all)
	}
}
