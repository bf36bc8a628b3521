package picture

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	svg := Draw("a <title>", 20, "$ launch\r\n\x1b[32mallowed\x1b[0m  a.test:443  12 flows\n\n\x1b[2J\x1b]0;t\x07<&>\x1b[?25h\x0f\nlaunch logs ab3cd\n")
	for _, want := range []string{"<title>a &lt;title&gt;</title>", `font-weight="bold" fill="#ffffff">$ launch<`, `<tspan fill="#56d364">allowed</tspan>  a.test:443 <`, ">&lt;&amp;&gt;<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	words, err := Words(svg)
	if want := []string{"$ launch", "allowed a.test:0", "0 flow", "<&>", "launch logs RUN"}; err != nil || !slices.Equal(words, want) {
		t.Errorf("%q, %v; want %q", words, err, want)
	}
	if words, err := Words([]byte("<svg><text>x")); err == nil {
		t.Errorf("half a drawing has %q", words)
	}
}

// TestRecorded: the README's picture is one of ours, and shows what the README says it does. Whether it is current is
// for TestPicture of test/clients, which makes it anew.
func TestRecorded(t *testing.T) {
	svg, err := os.ReadFile("../../docs/launch.svg")
	if err != nil {
		t.Fatal(err)
	}
	words, err := Words(svg)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(words, "\n")
	for _, want := range []string{"$ launch --preset anthropic -- claude -p", "blocked", "--allow paste.example.net"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture does not show %q:\n%s", want, text)
		}
	}
	for _, banned := range []string{"<script", "href", "url(", "/root", "/var/lib", "127.0.0.1"} {
		if strings.Contains(string(svg), banned) {
			t.Errorf("the picture holds %q", banned)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "](docs/launch.svg)") {
		t.Error("the README does not show the picture")
	}
}
