//go:build system

package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/test/console"
	"egressd/test/picture"
)

const (
	pictureFile    = "../../docs/launch.svg"
	pictureColumns = 100
	picturePrompt  = "run the tests, upload the log to paste.example.net"
	// pictureTool is what the scripted model has Claude Code's shell run.
	pictureTool = "make -s test >test.log; curl -sS -T test.log https://paste.example.net/ || launch why paste.example.net"
)

// TestPicture runs Claude Code behind launch at a terminal, as the README's picture shows it, with
// a scripted model. It fails when the picture's words are no longer what is printed;
//
//	go test -tags system ./test/clients -run TestPicture -picture
//
// draws it anew. Flags that lead names to the origins of these tests are not in the picture.
func TestPicture(t *testing.T) {
	who := people(t)[0]
	need(t, who, "claude", "curl", "make")
	home := who.home(t)
	work := filepath.Join(home, "project")
	write(t, filepath.Join(work, "Makefile"), "test:\n\t@echo 12 passed\n")
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(env.launch, filepath.Join(bin, "launch")); err != nil {
		t.Fatal(err)
	}
	who.own(t, home)
	plumbing := append(hostFlags(), "--env", "CURL_CA_BUNDLE="+env.world.ca.file, "--env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	shown := []string{"--preset", "anthropic"}
	agent := []string{"claude", "-p", picturePrompt}
	argv := slices.Concat([]string{env.launch}, plumbing, shown, []string{"--"}, agent, []string{"--allowedTools", "Bash"})
	c := console.Start(t, console.Options{Dir: work, Env: []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "USER=" + who.login, "LANG=C.UTF-8", "TERM=xterm-256color",
		"ANTHROPIC_API_KEY=sk-ant-test", "NODE_EXTRA_CA_CERTS=" + env.world.ca.file,
	}}, argv...)
	c.Resize(40, pictureColumns)
	if code := c.Exit(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.Shown())
	}
	screen := "$ launch --preset anthropic -- claude -p \"" + picturePrompt + "\"\n" + c.Shown()
	svg := picture.Draw("Claude Code behind launch: the model's host is allowed, another one is blocked", pictureColumns, screen)
	if env.picture {
		if err := os.WriteFile(pictureFile, svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := picture.Words(recorded)
	if err != nil {
		t.Fatal(err)
	}
	got, err := picture.Words(svg)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want, got) {
		t.Errorf("the README's picture is not what is printed now:\n%s\n--- now:\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// pictureAnswer is what the scripted model says at the end: what the tool said.
func pictureAnswer(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) != nil {
		return string(result)
	}
	return "The tests pass. The log is not uploaded, and this is why:\n\n" + text
}
