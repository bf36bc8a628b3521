package learn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
	"egressd/policy/files"
)

func refused(path string, wanted files.Access, reason files.Reason) *event.FileRefused {
	return &event.FileRefused{Path: path, Wanted: wanted, Reason: reason}
}

// The learned policy opens what was refused, by its name alone, and keeps the
// rules of the run; secrets and what runs later are left to a person.
func TestFiles(t *testing.T) {
	r := Recorder{Files: files.Section{Hide: []files.Rule{{Path: "**/.env", At: "--hide #1"}}, Home: files.HomeReadOnly}}
	for _, b := range []event.Body{
		refused("/srv/out", files.ReadWrite, files.System), refused("/srv/out", files.ReadWrite, files.System),
		refused("/srv/a*: b\u00e9", files.ReadOnly, files.System),
		refused("/home/me/.ssh/id", files.ReadOnly, files.Credential), refused("/home/me/.bashrc", files.ReadWrite, files.RunsLater),
		refused("/srv/hidden", files.ReadOnly, files.Named), refused("/srv/\xff", files.ReadOnly, files.System),
		refused("/srv/two\nlines", files.ReadWrite, files.System),
	} {
		if err := r.Emit(event.Event{Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := policy.ParseFile("learned", r.Text())
	if err != nil {
		t.Fatalf("%v in\n%s", err, r.Text())
	}
	want := []string{"write: /srv/out", `read: /srv/a\*: bé`, "hide: **/.env", "home: ro"}
	if got := doc.Files.Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q want %q", got, want)
	}
	for _, doubt := range []string{"/home/me/.ssh/id", "/home/me/.bashrc", "/srv/hidden"} {
		if !strings.Contains(string(r.Text()), `#   - "`+doubt) && !strings.Contains(string(r.Text()), "#   - "+scalar(doubt)) {
			t.Errorf("%s is not told:\n%s", doubt, r.Text())
		}
	}
}

func TestFilesAreBounded(t *testing.T) {
	var r Recorder
	for i := range maxRefusals + 10 {
		if err := r.Emit(event.Event{Body: refused(fmt.Sprintf("/f%d", i), files.ReadWrite, files.System)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.paths) != maxRefusals || !strings.Contains(string(r.Text()), "NOT COMPLETE") {
		t.Errorf("%d are kept", len(r.paths))
	}
}
