package runas

import (
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name, user, sudo string
		euid             int
		uid              int // -1: nobody else; -2: an error
	}{
		{"an ordinary user", "", "", 1000, -1},
		{"an ordinary user with a forged variable", "", "0", 1000, -1},
		{"an ordinary user asks for another", "root", "", 1000, -2},
		{"root", "", "", 0, -1},
		{"root through sudo by root", "", "0", 0, -1},
		{"root names a user", "root", "", 0, 0},
		{"by number", "0", "", 0, 0},
		{"named before sudo", "root", "4294967294", 0, 0},
		{"no such user", "no-such-user", "", 0, -2},
		{"sudo by nobody we know", "", "4294967294", 0, -2},
		{"sudo with nonsense", "", "x", 0, -2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := Find(tt.user, tt.sudo, tt.euid)
			switch {
			case tt.uid == -2:
				if err == nil {
					t.Errorf("got %+v, want an error", u)
				} else if tt.euid != 0 && !strings.HasSuffix(err.Error(), "write sudo launch --user "+tt.user) {
					t.Errorf("%v: it does not say what to type", err)
				}
			case err != nil:
				t.Error(err)
			case tt.uid == -1 && u != nil, tt.uid >= 0 && (u == nil || u.UID != uint32(tt.uid)):
				t.Errorf("got %+v", u)
			case u != nil && !slices.Contains(u.Env, "USER=root"):
				t.Errorf("environment %q", u.Env)
			}
		})
	}
}
