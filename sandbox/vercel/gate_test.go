package vercel

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event/eventtest"
	"egressd/policy"
	"egressd/sandbox/vercel/fake"
	"egressd/sandbox/vercel/inside"
	"egressd/sandbox/vercel/network"
)

// probe is the program of these tests in the sandbox: METHOD URL..., each asked and
// answered on a line.
func probe(args []string) {
	client := &http.Client{Timeout: 20 * time.Second}
	for i := 0; i+1 < len(args); i += 2 {
		req, err := http.NewRequest(args[i], args[i+1], nil)
		if err != nil {
			panic(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println("failed:", err)
			continue
		}
		body, _ := io.ReadAll(resp.Body) // a part is as good
		resp.Body.Close()
		line, _, _ := strings.Cut(string(body), "\n")
		fmt.Println(resp.StatusCode, line)
	}
}

// ask is a line of a script that runs the probe.
func ask(words ...string) string { return `"/proc/$PPID/exe" probe ` + strings.Join(words, " ") }

// builtIn is where egressd was built; "": it was not.
var builtIn string

// egressd is built once.
var egressd = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "egressd-inside-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	out := filepath.Join(dir, "egressd")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "egressd/cmd/egressd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, text)
	}
	return out, nil
})

// gated is a world with an origin, to which api.example.com and other.example.com lead, and a gate
// inside that allows GET below /v1/ of api.example.com, whose header the service adds.
func gated(t *testing.T) (w *world, base string) {
	t.Helper()
	o := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%s %s key=%v", r.Method, r.Host, r.Header.Get("X-Key") != "")
	}))
	t.Cleanup(o.Close)
	at := netip.MustParseAddrPort(o.Listener.Addr().String())
	here := []netip.Addr{at.Addr()}
	w = newWorld(t, fake.Config{
		Hosts:   map[string][]netip.Addr{"api.example.com": here, "other.example.com": here},
		RootCAs: o.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, TLSPorts: []uint16{at.Port()},
	})
	bin, err := egressd()
	must(t, err)
	port := strconv.Itoa(int(at.Port()))
	p, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: "GET https://api.example.com:" + port + "/v1/**"}}})
	must(t, err)
	w.back.Gate, err = inside.Open(bin, p)
	must(t, err)
	w.back.Network, err = network.TranslateOuter(p, nil)
	must(t, err)
	w.back.Network.Headers = map[string]map[string]string{"api.example.com": {"x-key": realSecret}}
	return w, ".example.com:" + port
}

// One run, since a gate is large: what it lets out and says; then the program ignores its
// proxy variables, and then it ends the gate.
//
// Threat: it does these. The service's firewall stands, and the person is told.
func TestGateInside(t *testing.T) {
	t.Parallel()
	w, base := gated(t)
	api, other := "https://api"+base+"/v1/x", "https://other"+base+"/"
	w.ok(7, ask("GET", api, "POST", api, "GET", other)+`
(unset HTTPS_PROXY https_proxy; `+ask("GET", other, "POST", api)+`)
kill -9 $(grep -slx -z -- --ca-bundle /proc/[0-9]*/cmdline | sed "s|/proc/||; s|/cmdline||")
while bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"${HTTPS_PROXY##*:}" 2>/dev/null; do :; done
`+ask("GET", api)+`; exit 7`)
	lines := append(strings.Split(w.read(w.out), "\n"), make([]string, 6)...)
	for i, want := range []string{
		"200 GET api" + base + " key=true", "403 egressd", `failed: Get "` + other + `": Blocked by egressd`,
		"failed: ",                                // Vercel's firewall
		"200 POST api" + base + " key=true",       // what SECURITY.md says of methods
		`failed: Get "` + api + `": proxyconnect`, // nobody is there
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("answer %d is %q, want %q", i, lines[i], want)
		}
	}
	if !slices.ContainsFunc(w.said, func(s string) bool { return strings.Contains(s, "egressd in the sandbox has ended") }) {
		t.Errorf("nothing was said of the gate's end: %q", w.said)
	}
	var got []string
	for _, e := range w.events {
		if e.Isolation != inside.Isolation || e.Session != w.back.Session {
			t.Errorf("an event of %q in %q: %+v", e.Session, e.Isolation, e)
		}
		if e.Type == "network.connected" {
			got = append(got, strings.Join([]string{e.Decision, e.Reason, e.Host, e.Method, e.Path}, " "))
		}
	}
	for _, want := range []string{"allowed allowed api.example.com GET /v1/x", "blocked method_not_listed api.example.com POST /v1/x", "blocked host_not_listed other.example.com  "} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no event %q in %q", want, got)
		}
	}
	for _, r := range w.api.Requests() {
		if strings.HasSuffix(r.Path, "/fs/write") && strings.Contains(string(r.Body), realSecret) {
			t.Error("a secret was sent into the machine")
		}
	}
	w.clean()
}

// A gate that does not start starts nothing.
func TestGateInsideFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	// An ELF header alone.
	data := make([]byte, 64)
	copy(data, "\x7fELF\x02\x01\x01")
	data[16], data[18], data[20], data[52] = 2, 62, 1, 64
	broken := filepath.Join(t.TempDir(), "broken")
	must(t, os.WriteFile(broken, data, 0o755))
	p, err := policy.Compile()
	must(t, err)
	w.back.Gate, err = inside.Open(broken, p)
	must(t, err)
	res, err := w.run("echo ran")
	if err == nil || res.ExitCode != exitLauncher || !strings.Contains(err.Error(), "egressd in the sandbox") {
		t.Errorf("code %d, %v", res.ExitCode, err)
	}
	if got := w.read(w.out); got != "" {
		t.Errorf("the program ran: %q", got)
	}
	if n := slices.IndexFunc(w.events, func(e eventtest.Line) bool { return strings.HasPrefix(e.Type, "network") }); n >= 0 {
		t.Errorf("event %+v", w.events[n])
	}
	w.clean()
}
