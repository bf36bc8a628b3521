package forward

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

const expecting = "POST /a HTTP/1.1\r\nHost: origin.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"

// TestOneContinue pins the order of what a client sees that waits for 100: it
// gets one, before the final response, and its body goes on after it.
func TestOneContinue(t *testing.T) {
	const hundred, hints = "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	for _, tt := range []struct {
		name          string
		patience      time.Duration // for the origin's 100
		before, after string        // what the origin sends before it reads the body, and then
		client        string        // the status codes that the client sees
		sent          bool
	}{
		{"one", time.Hour, hundred, fine, "100 200", true},
		{"two at once", time.Hour, hundred + hundred, fine, "100 200", true},
		{"two around the body", time.Hour, hundred, hundred + fine, "100 200", true},
		{"hints and one", time.Hour, hints + hundred, fine, "103 100 200", true},
		{"one and hints", time.Hour, hundred + hints, fine, "100 103 200", true},
		{"none", time.Nanosecond, "", fine, "100 200", true},
		{"late", time.Nanosecond, "", hundred + hints + fine, "100 103 200", true},
		{"late and twice", time.Nanosecond, "", hundred + hundred + fine, "100 200", true},
		{"refused", time.Hour, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n", "", "417", false},
		{"hints and refused", time.Hour, hints + "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "", "103 401", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			origin := make(chan string, 1)
			r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
				head(br)
				_, _ = io.WriteString(c, tt.before)
				if !tt.sent {
					b, _ := io.ReadAll(br)
					origin <- string(b)
					return
				}
				b := make([]byte, 4)
				_, _ = io.ReadFull(br, b)
				origin <- string(b)
				_, _ = io.WriteString(c, tt.after)
			})
			r.p.patience = tt.patience
			c, br := r.dial()
			_, _ = io.WriteString(c, expecting)
			var seen []string
			for len(seen) == 0 || strings.HasPrefix(seen[len(seen)-1], "1") {
				h := head(br)
				if len(h) < 12 {
					t.Fatalf("%q after %q", h, seen)
				}
				seen = append(seen, h[9:12])
				if h[9:12] == "100" {
					_, _ = io.WriteString(c, "body")
				}
			}
			if got := strings.Join(seen, " "); got != tt.client {
				t.Errorf("the client saw %s, want %s", got, tt.client)
			}
			r.outcome()
			if b := <-origin; (b == "body") != tt.sent {
				t.Errorf("the origin got %q", b)
			}
		})
	}
}

// TestContinueRaces has the origin's 100 arrive while the wait for it ends.
func TestContinueRaces(t *testing.T) {
	for range 50 {
		r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
			head(br)
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			_, _ = io.ReadFull(br, make([]byte, 4))
			_, _ = io.WriteString(c, fine)
		})
		r.p.patience = 100 * time.Microsecond
		c, br := r.dial()
		_, _ = io.WriteString(c, expecting+"body")
		if h := head(br); !strings.HasPrefix(h, "HTTP/1.1 100 ") {
			t.Fatalf("%q", h)
		}
		if h := head(br); !strings.HasPrefix(h, "HTTP/1.1 200 ") {
			t.Fatalf("%q", h)
		}
	}
}
