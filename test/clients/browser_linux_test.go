//go:build system

package clients

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Chromium's own sandbox needs user namespaces, which launch does not give
// away: the gate is around the browser instead.
var chromiumFlags = []string{"--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"}

func TestChromium(t *testing.T) {
	name := ""
	for _, n := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if _, err := exec.LookPath(n); err == nil {
			name = n
			break
		}
	}
	if name == "" {
		t.Skip("chromium is not installed")
	}
	trust := "--ignore-certificate-errors-spki-list=" + env.world.ca.spki
	browse := func(page string) []string {
		return append(append([]string{name, "--user-data-dir={home}/profile", trust}, chromiumFlags...), page)
	}
	client{
		name: "https with HTTP/3 on offer", needs: []string{name}, rules: []string{webHost},
		argv: browse(url(webHost, "page")), want: `fetched: hello from the origin over HTTP/2.0`,
	}.run(t)
	for mode, captured := range map[string]bool{"proxy variables": false, "captured": true} {
		t.Run("denied, "+mode, func(t *testing.T) {
			who := serverUser(t)
			need(t, who, name)
			home := who.home(t)
			argv := append([]string{name, "--user-data-dir=" + home + "/profile"}, chromiumFlags...)
			s := session{who: who, home: home, captured: captured, argv: append(argv, url(deniedHost, "page"))}
			e := s.run(t)
			// The exit code is 0 all the same, as outside. "Disconnected" is how
			// it calls an unknown name on a kernel without dummy interfaces.
			if want := regexp.MustCompile(`ERR_(TUNNEL_CONNECTION_FAILED|NAME_NOT_RESOLVED|INTERNET_DISCONNECTED)`); !want.MatchString(e.all()) {
				t.Errorf("the browser does not say what failed\nstdout: %.3000s\nstderr: %.5000s", e.stdout, e.stderr)
			}
			checkBlocked(t, s, e)
		})
	}
	t.Run("QUIC forced", func(t *testing.T) {
		who := serverUser(t)
		need(t, who, name)
		home := who.home(t)
		argv := append([]string{name, "--user-data-dir=" + home + "/profile", trust, "--origin-to-force-quic-on=" + webHost + ":443"}, chromiumFlags...)
		s := session{who: who, home: home, flags: []string{"--allow", webHost}, captured: true, argv: append(argv, url(webHost, "page"))}
		e := s.run(t)
		if !slices.ContainsFunc(e.blocked, func(b string) bool { return strings.Contains(b, "protocol_not_carried") }) {
			t.Errorf("the browser did not try QUIC, or nobody saw it: %v", e.blocked)
		}
		if e.took > 30*time.Second {
			t.Errorf("the browser took %v to learn that UDP does not leave\n%s", e.took, e.stderr)
		}
		if n := env.world.quic.Load(); n != 0 {
			t.Errorf("%d datagrams left", n)
		}
	})
}
