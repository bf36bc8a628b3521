package main

import (
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// needed are the programs that install.sh runs, but for what fetches.
var needed = []string{"sh", "uname", "mktemp", "rm", "sed", "sha256sum", "tar", "gzip", "mkdir", "chmod", "cp", "mv"}

// fetchWith prepares an environment in which one program can fetch, and trusts a server.
func fetchWith(t *testing.T, program string, server *httptest.Server) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append([]string{program}, needed...) {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("there is no %s here", name)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	roots, rc := filepath.Join(dir, "roots.pem"), filepath.Join(dir, "wgetrc")
	put(t, roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	put(t, rc, []byte("ca_certificate = "+roots+"\ntries = 1\n"))
	return []string{"PATH=" + dir, "HOME=" + dir, "TMPDIR=" + t.TempDir(), "CURL_CA_BUNDLE=" + roots, "WGETRC=" + rc}
}

// TestInstallHTTPS installs from a server, with each program that can fetch. The attacks are a server that is not who it
// should be, one that sends the client on to plain HTTP, one that cuts the archive, and one that sends without end.
func TestInstallHTTPS(t *testing.T) {
	skipElsewhere(t)
	dir, _ := published(t)
	files := http.FileServer(http.Dir(dir))
	plain := httptest.NewServer(files)
	defer plain.Close()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/plain/"):
			http.Redirect(w, r, plain.URL+strings.TrimPrefix(path, "/plain"), http.StatusFound)
		case strings.HasPrefix(path, "/cut/") && strings.HasSuffix(path, ".gz"):
			w.Header().Set("Content-Length", "100000")
			w.Write([]byte("a beginning")) //nolint:errcheck // who asked may be gone
		case strings.HasPrefix(path, "/large/"): // without an end
			for n := 0; n < 1<<20; n += 4096 {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		case strings.HasPrefix(path, "/cut/"), strings.HasPrefix(path, "/good/"):
			http.StripPrefix(path[:strings.IndexByte(path[1:], '/')+1], files).ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	for _, program := range []string{"curl", "wget"} {
		t.Run(program, func(t *testing.T) {
			env := fetchWith(t, program, server)
			for name, ok := range map[string]bool{"good": true, "plain": false, "cut": false, "large": false, "nothing": false} {
				to := filepath.Join(t.TempDir(), "bin")
				cmd := exec.CommandContext(t.Context(), filepath.Join(strings.TrimPrefix(env[0], "PATH="), "sh"),
					"../../install.sh", "--version", "v1.2.3", "--from", server.URL+"/"+name, "--to", to)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				_, there := os.Stat(filepath.Join(to, "launch"))
				if (err == nil) != ok || (there == nil) != ok {
					t.Errorf("%s: %v: %s", name, err, out)
				}
			}
			for i := range env { // no longer trusted
				if strings.HasPrefix(env[i], "CURL_CA_BUNDLE=") || strings.HasPrefix(env[i], "WGETRC=") {
					env[i] = "UNUSED=1"
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(strings.TrimPrefix(env[0], "PATH="), "sh"),
				"../../install.sh", "--version", "v1.2.3", "--from", server.URL+"/good", "--to", t.TempDir())
			cmd.Env = env
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "cannot be fetched") {
				t.Errorf("a stranger's server: %v: %s", err, out)
			}
		})
	}
}
