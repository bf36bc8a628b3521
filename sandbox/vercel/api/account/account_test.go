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
	old := jwt(`{"owner_id":"o","project_id":"p","exp":1790000000}`)
	for _, tt := range []struct {
		name string
		s    Sources
		want string // token, team, project; "" is an error
		err  string
	}{
		{"the first token", Sources{Tokens: []Place{{}, {Token: "f"}, {Token: "e"}}, TeamIDs: []string{"", "t", "et"}, ProjectIDs: []string{"p", "ep"}}, "f t p", ""},
		{"a project alone", Sources{Tokens: []Place{{Token: "e"}}, ProjectIDs: []string{"p"}}, "e  p", ""},
		{"a link", Sources{Tokens: []Place{{Token: "e"}}, LinkTeamID: "lt", LinkProjectID: "lp"}, "e lt lp", ""},
		{"a link and a team", Sources{Tokens: []Place{{Token: "e"}}, TeamIDs: []string{"t"}, LinkTeamID: "lt", LinkProjectID: "lp"}, "e t lp", ""},
		{"a link's team is its project's", Sources{Tokens: []Place{{Token: "e"}}, ProjectIDs: []string{"p"}, LinkTeamID: "lt", LinkProjectID: "lp"}, "e  p", ""},
		{"OIDC", Sources{Tokens: []Place{{Token: oidc, OIDC: true}}, LinkTeamID: "lt", LinkProjectID: "lp"}, oidc + " team_o prj_o", ""},
		{"OIDC and a project", Sources{Tokens: []Place{{Token: oidc}}, ProjectIDs: []string{"ep"}}, oidc + " team_o ep", ""},
		{"OIDC knows its team", Sources{Tokens: []Place{{Token: oidc}}, TeamIDs: []string{"t"}}, oidc + " team_o prj_o", ""},
		{"OIDC without an end", Sources{Tokens: []Place{{Token: jwt(`{"owner_id":"o","project_id":"p"}`)}}}, jwt(`{"owner_id":"o","project_id":"p"}`) + " o p", ""},
		{"nothing", Sources{}, "", "set VERCEL_TOKEN or VERCEL_OIDC_TOKEN"},
		{"a token alone", Sources{Tokens: []Place{{Token: "e"}}}, "", "set VERCEL_PROJECT_ID"},
		{"expired", Sources{Tokens: []Place{{Name: "here", Token: old}, {Token: "e"}}, ProjectIDs: []string{"p"}}, "", "has expired at 2026-09-21T14:13:20Z (here)"},
		{"expired, of a file", Sources{Tokens: []Place{{Token: old, Weak: true}, {Token: "e"}}, ProjectIDs: []string{"p"}}, "e  p", ""},
		{"expired, of files", Sources{Tokens: []Place{{Name: "first", Token: old, Weak: true}, {Token: "e", Expires: now, Weak: true}}}, "", "(first)"},
		{"a login that has not expired", Sources{Tokens: []Place{{Token: "e", Expires: now.Add(1), Weak: true}}, ProjectIDs: []string{"p"}}, "e  p", ""},
		{"OIDC that is no JWT", Sources{Tokens: []Place{{Token: "x", OIDC: true}}, ProjectIDs: []string{"p"}}, "", "does not name"},
		{"OIDC without a team", Sources{Tokens: []Place{{Token: jwt(`{"project_id":"p"}`), OIDC: true}}}, "", "does not name"},
		{"a token with a line break", Sources{Tokens: []Place{{Token: "a\nb"}}, ProjectIDs: []string{"p"}}, "", "character"},
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
	c, _ := Sources{Tokens: []Place{{Name: "here", Token: oidc}}}.Resolve(now)
	if !c.OIDC || c.From != "here" || c.Expires.Unix() != 1790000001 {
		t.Errorf("expires %v", c.Expires)
	}
	var missing *MissingError
	if _, err := (Sources{}).Resolve(now); !errors.As(err, &missing) {
		t.Error(err)
	}
}

func TestPrinted(t *testing.T) {
	s := Sources{Tokens: []Place{{Token: "SECRET"}}}
	c := Credentials{Token: "SECRET"}
	if all := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", s, s, s, s, c, c, c); strings.Contains(all, "SECRET") {
		t.Error(all)
	}
}
