package completion

import (
	"flag"
	"strings"
	"testing"
)

// TestMan has every flag and command in the page, and nothing that roff would obey.
func TestMan(t *testing.T) {
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	fs.String("one", "", "takes a `FILE`\n.so /etc/passwd")
	fs.Bool("two", false, `.TH \fBbold`)
	page, err := Script("man", Spec{Program: "launch", Flags: fs, Runs: true, Commands: []Command{{Name: "doctor"}, {Name: "sandbox", Words: []string{"ls", "ps"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".TH LAUNCH 1", "launch \\- run a program", "\\fB\\-\\-one\\fR \\fIFILE\\fR\ntakes a FILE .so /etc/passwd\n",
		"\\fB\\-\\-two\\fR\n\\&.TH \\efBbold\n", ".SS doctor\n", ".SS sandbox ls | ps\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}
