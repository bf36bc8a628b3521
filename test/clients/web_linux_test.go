//go:build system

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/websocket"
)

// bigBytes is the size of large bodies, past every buffer on the way.
const bigBytes = 32 << 20

// routeWeb adds the general origin's pages.
func (w *world) routeWeb() {
	w.mux.HandleFunc(webHost+"/hello", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "hello from the origin over %s\n", r.Proto)
	})
	w.mux.HandleFunc(webHost+"/client", func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(rw, r.RemoteAddr) // the same for two requests of one connection
	})
	w.mux.HandleFunc(webHost+"/page", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		// HTTP/3 is on offer, and UDP never leaves: a browser must not wait for it.
		rw.Header().Set("Alt-Svc", `h3=":443"; ma=3600`)
		io.WriteString(rw, `<title>t</title><p id=p>before</p><script>fetch('/hello').then(r=>r.text()).then(t=>{document.getElementById('p').textContent='fetched: '+t})</script>`)
	})
	w.mux.HandleFunc(webHost+"/big", serveBig)
	w.mux.HandleFunc(webHost+"/digest", serveDigest)
	w.mux.HandleFunc(webHost+"/sse", serveEvents)
	w.mux.Handle(webHost+"/ws", websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }})
}

func serveBig(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Length", strconv.Itoa(bigBytes))
	_, _ = io.Copy(rw, bigBody()) // the client checks the sum
}

// serveDigest reports the SHA-256 of what was sent to it.
func serveDigest(rw http.ResponseWriter, r *http.Request) {
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(rw, "%d %s\n", n, hex.EncodeToString(h.Sum(nil)))
}

// serveEvents sends three events, each only after the last is flushed, and
// waits in between: a proxy that buffers shows in the client's clock.
func serveEvents(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	for i := range 3 {
		fmt.Fprintf(rw, "data: event %d\n\n", i)
		if err := http.NewResponseController(rw).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// bigBody is bigBytes of text that is the same each time.
func bigBody() io.Reader {
	return io.LimitReader(&counting{}, bigBytes)
}

// counting reads as endless numbered lines.
type counting struct {
	n    int
	rest string
}

func (c *counting) Read(p []byte) (int, error) {
	if c.rest == "" {
		var b strings.Builder
		for range 4096 {
			fmt.Fprintf(&b, "%015d\n", c.n)
			c.n++
		}
		c.rest = b.String()
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func bigSum() string {
	h := sha256.New()
	_, _ = io.Copy(h, bigBody()) // neither can fail
	return hex.EncodeToString(h.Sum(nil))
}
