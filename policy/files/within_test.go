package files

import (
	"strings"
	"testing"
)

func TestWithin(t *testing.T) {
	ceiling := Section{Write: rules("/srv/out"), Read: rules("~/.aws/config"), Hide: rules("/srv/key"), Home: HomeReadOnly}
	good := ceiling
	for _, tt := range []struct {
		name string
		with func(*Section)
		want string // "": within
	}{
		{"the same", func(*Section) {}, ""},
		{"less written", func(s *Section) { s.Write = nil }, ""},
		{"more hidden", func(s *Section) { s.Hide = append(rules("/x"), s.Hide...) }, ""},
		{"hidden instead of read", func(s *Section) { s.Read, s.Hide = nil, append(rules("~/.aws/config"), s.Hide...) }, ""},
		{"private home", func(s *Section) { s.Home = HomePrivate }, ""},
		{"default home", func(s *Section) { s.Home = HomeUnset }, ""},
		{"written and read", func(s *Section) { s.Read = append(rules("/srv/out"), s.Read...) }, ""},
		{"nothing hidden", func(s *Section) { s.Hide = nil }, "--hide /srv/key"},
		{"nothing read-only", func(s *Section) { s.Read = nil }, "--read ~/.aws/config"},
		{"more written", func(s *Section) { s.Write = append(rules("~/.ssh"), s.Write...) }, "~/.ssh"},
		{"more read", func(s *Section) { s.Read = append(rules("~/.ssh"), s.Read...) }, "~/.ssh"},
		{"open home", func(s *Section) { s.Home = HomeReadWrite }, "--home ro"},
	} {
		s := good
		tt.with(&s)
		err := s.Within(ceiling)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if err != nil {
			continue
		}
		own, most := gateOf(t, s, Place{}), gateOf(t, ceiling, Place{})
		for _, name := range []string{
			"/srv/out/x", "/srv/key", "/x", home + "/.aws/config", home + "/.aws/credentials", home + "/.ssh/id", home + "/n",
			home + "/.cache/x", work + "/x", work + "/.git/config", home + "/.bashrc", "/etc/passwd", "/etc/shadow",
		} {
			if o, m := own.Decide(name), most.Decide(name); o.Access > m.Access {
				t.Errorf("%s is within, and %s is %s instead of %s", tt.name, name, o.Access, m.Access)
			}
		}
	}
}
