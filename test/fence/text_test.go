package fence

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// textBan is something that must not stand in committed text.
type textBan struct {
	what   string
	re     *regexp.Regexp
	in     []string // file name endings; none: every text file
	except map[string]string
}

// Patterns are put together from halves so that this file does not find itself.
var textBans = []textBan{
	{
		what: "an unfinished thing: finish it or file an issue",
		re:   regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		in:   []string{".go", ".md", ".yml", ".yaml", ".sh"},
	},
	{
		what: "an absolute path of somebody's machine",
		re:   regexp.MustCompile(`(/wo` + `rk/|/tmp/bri` + `ef|/home/[a-z]+/(src|go|code)/|/Us` + `ers/)`),
	},
	{
		what: "a package registry's host name: it is data of the presets; examples use example.com",
		re: regexp.MustCompile(`\b(registry\.npm` + `js\.org|proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|py` + `pi\.org|files\.pythonho` + `sted\.org|` +
			`static\.crat` + `es\.io|index\.crat` + `es\.io|repo\.mav` + `en\.apache\.org|repo1\.mav` + `en\.org|deb\.deb` + `ian\.org)\b`),
		except: map[string]string{
			"policy/presets":        "the presets are lists of those hosts, with their sources",
			"policy/preset_test.go": "checks that the presets name them",
			"policy":                "preset data and its tests, wherever in the room they stand",
			"docs":                  "tells users which hosts a preset opens",
			"README.md":             "shows what a user types for the registries",
			"cmd/launch/testdata":   "scripts that print presets",
			"test/docs/testdata":    "stands for the programs of the pages' examples, which reach what presets open",
		},
	},
	{
		what: "the mark of a merge that was not finished",
		re:   regexp.MustCompile(`^(<<<<` + `<<< |>>>>` + `>>> )|\n(<<<<` + `<<< |>>>>` + `>>> )`),
	},
	{
		what: "an emoji or another pictograph",
		re:   regexp.MustCompile(`[\x{1F300}-\x{1FAFF}\x{2600}-\x{27BF}]`),
		in:   []string{".go", ".md"},
	},
}

func TestText(t *testing.T) {
	walk(t, func(rel string, data []byte) {
		if bytes.IndexByte(data, 0) >= 0 || strings.HasPrefix(rel, "test/fence/") || path.Base(rel) == "go.sum" || strings.Contains(rel, "testdata/fuzz/") {
			return
		}
		for _, b := range textBans {
			if b.in != nil && !slices.Contains(b.in, path.Ext(rel)) || inAny(rel, b.except) || !b.re.Match(data) {
				continue
			}
			for n, line := range bytes.Split(data, []byte("\n")) {
				if m := b.re.Find(line); m != nil {
					t.Errorf("%s:%d: %q is %s", rel, n+1, m, b.what)
				}
			}
		}
	})
}

func inAny(rel string, places map[string]string) bool {
	for p := range places {
		if rel == p || strings.HasPrefix(rel, p+"/") {
			return true
		}
	}
	return false
}

// A doc that names a file or directory of this tree must not outlive it.
func TestDocPathsExist(t *testing.T) {
	ref := regexp.MustCompile("`((?:policy|event|proxy|dnsfilter|netns|sandbox|cmd|internal|bench|docs)/[A-Za-z0-9_./-]*)`")
	have := map[string]bool{}
	walk(t, func(rel string, _ []byte) {
		for p := rel; p != "."; p = path.Dir(p) {
			have[p] = true
		}
	})
	walk(t, func(rel string, data []byte) {
		if path.Ext(rel) != ".md" {
			return
		}
		for _, m := range ref.FindAllSubmatch(data, -1) {
			p := strings.TrimSuffix(strings.TrimSuffix(string(m[1]), "..."), "/")
			if !have[p] && !have[path.Join(path.Dir(rel), p)] {
				t.Errorf("%s names %s, which does not exist", rel, m[1])
			}
		}
	})
}
