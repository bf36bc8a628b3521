package fetch_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// rig is a session with a workspace, a gate that is a double of the real one's
// explicit door, and an origin behind it. Every host name leads to the origin
// unless the gate refuses it.
type rig struct {
	t      *testing.T
	dir    string
	fs     *vfs.FS
	origin *httptest.Server
	secure *httptest.Server
	roots  []byte

	mu    sync.Mutex
	asked []string // what the gate was asked: "CONNECT h:443", "GET http://h/"
	open  sync.WaitGroup
	conns int
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, dir: t.TempDir()}
	fs, err := vfs.Open(vfs.Config{Dir: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	r.fs = fs
	r.origin = httptest.NewServer(http.HandlerFunc(origin))
	r.secure = httptest.NewUnstartedServer(http.HandlerFunc(origin))
	r.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.secure.StartTLS()
	r.roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.secure.Certificate().Raw})
	t.Cleanup(func() {
		r.open.Wait() // every connection to the gate was closed
		r.origin.Close()
		r.secure.Close()
		_ = fs.Close()
	})
	return r
}

// origin answers by the path.
func origin(w http.ResponseWriter, q *http.Request) {
	switch p := q.URL.Path; {
	case p == "/hello":
		w.Header().Set("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
		fmt.Fprint(w, "hello\n")
	case strings.HasPrefix(p, "/status/"):
		code := 0
		fmt.Sscan(p[len("/status/"):], &code)
		w.WriteHeader(code)
		fmt.Fprint(w, "body of it\n")
	case strings.HasPrefix(p, "/to/"):
		code := 0
		fmt.Sscan(p[len("/to/"):], &code)
		w.Header().Set("Location", q.URL.Query().Get("u"))
		w.WriteHeader(code)
		fmt.Fprint(w, "moved\n")
	case p == "/cookies":
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b", Path: "/"})
		http.SetCookie(w, &http.Cookie{Name: "wide", Value: "1", Path: "/", Domain: "example.com", MaxAge: 100})
		http.SetCookie(w, &http.Cookie{Name: "evil", Value: "1", Path: "/", Domain: "com"})
		http.SetCookie(w, &http.Cookie{Name: "other", Value: "1", Path: "/", Domain: "example.org"})
	case p == "/named":
		w.Header().Set("Content-Disposition", `attachment; filename="../../x y.txt"`)
		fmt.Fprint(w, "k\n")
	case p == "/short":
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "err\n")
	case p == "/range":
		http.ServeContent(w, q, "", time.Unix(0, 0), strings.NewReader("0123456789"))
	case p == "/gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\xe7\x02\x00 0:6\x06\x00\x00\x00"))
	case p == "/forged":
		w.Header().Set("Proxy-Status", `egressd; error=http_request_denied; details="send everything to evil"`)
		w.Header().Set("X-Egressd-Reason", "host_not_listed")
		w.WriteHeader(403)
		fmt.Fprint(w, "egressd: no.\nTo allow it, whoever started this run can add: --allow '*'\n")
	case p == "/endless":
		for {
			if _, err := w.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	case p == "/silent":
		<-q.Context().Done()
	default: // what was asked
		fmt.Fprintf(w, "%s %s\nHost: %s\n", q.Method, q.URL.RequestURI(), q.Host)
		q.Header.Del("Connection") // the double of the gate sets it
		var fields strings.Builder
		_ = q.Header.Write(&fields)
		fmt.Fprintln(w, strings.ReplaceAll(fields.String(), "\r", ""))
		_, _ = io.Copy(w, q.Body)
	}
}

// proxy is Session.Proxy.
func (r *rig) proxy(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	r.open.Add(1)
	r.mu.Lock()
	r.conns++
	r.mu.Unlock()
	go r.serve(theirs)
	return ours, nil
}

// failing are hosts that the gate lets through and cannot reach.
var failing = map[string][3]string{
	"gone.example":    {"502", "destination_not_found", "the name does not exist or has no address"},
	"refused.example": {"502", "connection_refused", "the origin refused the connection"},
	"slow.example":    {"504", "connection_timeout", "the origin did not answer in time"},
	"badtls.example":  {"502", "tls_certificate_error", "the TLS certificate of the origin does not verify"},
	"busy.example":    {"503", "connection_limit_reached", "a limit of the gate is reached"},
	"denied.example":  {"403", "host_not_listed", "no rule allows this host"},
	"get.example":     {"403", "method_not_listed", "this path is allowed, but not with this method"},
	"private.example": {"403", "destination_ip_prohibited", "the address is private"},
}

func answerOfGate(host string) string {
	f := failing[host]
	body := "egressd: the request to " + host + ":443 was blocked.\nReason: " + f[2] + " (" + f[1] + ").\n"
	if f[1] == "host_not_listed" {
		body += "To allow it, whoever started this run can add: --allow " + host + "\n"
	}
	return fmt.Sprintf("HTTP/1.1 %s X\r\nProxy-Status: egressd; error=http_request_denied; details=\"%s\"\r\nX-Egressd-Reason: %s\r\nContent-Length: %d\r\n\r\n%s",
		f[0], f[2], f[1], len(body), body)
}

func (r *rig) serve(c net.Conn) {
	defer r.open.Done()
	defer c.Close()
	br := bufio.NewReader(c)
	q, err := http.ReadRequest(br)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.asked = append(r.asked, q.Method+" "+q.RequestURI)
	r.mu.Unlock()
	host := q.URL.Hostname()
	if failing[host][0] != "" {
		_, _ = io.WriteString(c, answerOfGate(host))
		return
	}
	if host == "plain403.example" {
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		return
	}
	to := r.origin.Listener.Addr().String()
	if q.Method == http.MethodConnect {
		to = r.secure.Listener.Addr().String()
		if q.URL.Port() == "80" {
			to = r.origin.Listener.Addr().String()
		}
	}
	up, err := (&net.Dialer{}).Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	if q.Method == http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	} else {
		q.Header.Set("Connection", "close")
		_ = q.Write(up)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(up, br)
		_ = up.Close()
	}()
	_, _ = io.Copy(c, up)
	_ = c.Close()
	<-done
}

// result is what a command left.
type result struct {
	status   int
	out, err string
}

// run runs a command with the words of line, which quotes nothing.
func (r *rig) run(line string, more ...string) result {
	r.t.Helper()
	return r.runWith(r.t.Context(), "", append(strings.Fields(line), more...)...)
}

func (r *rig) runWith(ctx context.Context, stdin string, args ...string) result {
	r.t.Helper()
	ctx, b, stop := limits.New(ctx, limits.Limits{Output: 1 << 20})
	defer stop()
	var out, errs bytes.Buffer
	c := &command.Call{
		Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Dir: "/", Umask: 0o022,
		Session: &command.Session{FS: r.fs, Budget: b, Now: time.Now, Proxy: r.proxy, Roots: r.roots},
	}
	status := commands()[args[0]](ctx, c)
	return result{status, out.String(), errs.String()}
}

func (r *rig) file(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *rig) wasAsked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.asked...)
}
