package fake

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// dials opens a terminal as the service's own command line does.
func (d *double) dials(url, token string) (*websocket.Conn, error) {
	d.t.Helper()
	c, resp, err := websocket.Dial(d.t.Context(), url+"?token="+token, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return c, err
}

// until reads output until it holds text; "" is the end, with the exit code.
func until(t *testing.T, c *websocket.Conn, text string) (out string, code int) {
	t.Helper()
	for {
		kind, data, err := c.Read(t.Context())
		if err != nil {
			t.Fatalf("%v after %q", err, out)
		}
		if kind == websocket.MessageBinary {
			if out += string(data); text != "" && strings.Contains(out, text) {
				return out, 0
			}
			continue
		}
		var m struct {
			Type string
			Code *int
		}
		if err := json.Unmarshal(data, &m); err != nil || m.Type != "exit" || m.Code == nil {
			t.Fatalf("%s: %v", data, err)
		}
		return out, *m.Code
	}
}

func say(t *testing.T, c *websocket.Conn, kind websocket.MessageType, text string) {
	t.Helper()
	if err := c.Write(t.Context(), kind, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestInteractive(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","env":{"FROM":"sandbox"}}`)
	g := d.send("POST", sessions+sid+"/interactive", `{}`).want(200)
	url, token := g.text("url"), g.text("token")
	if d.send("GET", "/health", nil).status != 200 {
		t.Error("it has no health")
	}
	if _, err := d.dials(url, "x"); err == nil {
		t.Error("a wrong token opened a terminal")
	}
	c, err := d.dials(url, token)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if _, err := d.dials(url, token); err == nil {
		t.Error("a token opened a second terminal")
	}
	say(t, c, websocket.MessageText, `{"type":"start","command":"sh","args":["-c","stty size; pwd; echo $FROM $OWN; read x; stty size; echo got $x; exit 4"],"env":["OWN=command"],"cwd":"/tmp","cols":90,"rows":30}`)
	until(t, c, "30 90\r\n/tmp\r\nsandbox command\r\n")
	say(t, c, websocket.MessageText, `{"type":"resize","cols":70,"rows":20}`)
	say(t, c, websocket.MessageBinary, "key\r")
	if out, code := until(t, c, ""); !strings.Contains(out, "20 70\r\ngot key\r\n") || code != 4 {
		t.Errorf("got %q, %d", out, code)
	}
	again := func() *websocket.Conn {
		g := d.send("POST", sessions+sid+"/interactive", `{}`).want(200)
		c, err := d.dials(g.text("url"), g.text("token"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c = again()
	defer c.CloseNow()
	say(t, c, websocket.MessageText, `{"type":"start","command":"no-such-program"}`)
	if out, code := until(t, c, ""); code != 127 || !strings.Contains(out, "not found") {
		t.Errorf("got %q, %d", out, code)
	}
	// The program is hung up when the client goes.
	c = again()
	say(t, c, websocket.MessageText, `{"type":"start","command":"sh","args":["-c","trap 'echo hung >/tmp/up; exit' HUP; echo ready; while :; do sleep 0.01; done"]}`)
	until(t, c, "ready")
	_ = c.CloseNow()
	if out, _ := d.run(sid, "until cat /tmp/up 2>/dev/null; do sleep 0.01; done"); out != "hung\n" {
		t.Errorf("got %q", out)
	}
	// One that says nothing of use is refused, and one that is open ends with the session.
	c = again()
	say(t, c, websocket.MessageText, `{"type":"resize"}`)
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("got %v", err)
	}
	c = again()
	say(t, c, websocket.MessageText, `{"type":"start","command":"cat"}`)
	d.send("POST", sessions+sid+"/stop", nil).want(200)
	for err = nil; err == nil; {
		_, _, err = c.Read(context.Background())
	}
	if websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v", err)
	}
}
