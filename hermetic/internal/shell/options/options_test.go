package options

import (
	"slices"
	"testing"
)

func TestSet(t *testing.T) {
	s := Default()
	if got := s.Letters(); got != "hB" {
		t.Errorf("$- is %q", got)
	}
	if !s.SetName("pipefail", true) || !s.SetLetter('e', true) || !s.SetName("braceexpand", false) || s.SetName("what", true) || s.SetLetter('z', true) {
		t.Error("names and letters of set are not as in bash")
	}
	if !s.On(PipeFail) || !s.On(ErrExit) || !s.On(NoBrace) || s.On(XTrace) {
		t.Errorf("flags are %b", s.Flags)
	}
	s.Flags |= Command
	if got := s.Letters(); got != "ehc" {
		t.Errorf("$- is %q", got)
	}
	if got, want := s.Names(), []string{"errexit", "hashall", "interactive-comments", "pipefail"}; !slices.Equal(got, want) {
		t.Errorf("$SHELLOPTS is %q, want %q", got, want)
	}
}

func TestCloneIsApart(t *testing.T) {
	s := Default()
	c := s.Clone()
	c.Shopt["nullglob"] = true
	c.SetName("errexit", true)
	if s.Shopt["nullglob"] || s.On(ErrExit) {
		t.Error("a subshell changes the options of its parent")
	}
	for name := range s.Shopt {
		if !slices.Contains(Shopts(), name) {
			t.Errorf("%s is on and is not an option", name)
		}
	}
}
