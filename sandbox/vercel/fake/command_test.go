package fake

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCommands(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false,"env":{"A":"sandbox","B":"sandbox"}}`)
	for _, tt := range []struct {
		name, body, out string
		code            int
	}{
		{"exit code", `"command":"sh","args":["-c","exit 7"]`, "", 7},
		{"killed by itself", `"command":"sh","args":["-c","kill -TERM $$"]`, "", 143},
		{"environment", `"command":"sh","args":["-c","echo $A $B"],"env":{"B":"command"}`, "sandbox command\n", 0},
		{"directory", `"command":"pwd","cwd":"/tmp"`, "/tmp\n", 0},
		{"relative directory", `"command":"pwd","cwd":"../tmp"`, "/tmp\n", 0},
		{"sudo", `"command":"sh","args":["-c","id -u; whoami; echo $HOME $A"],"sudo":true`, "0\nroot\n/root sandbox\n", 0},
		{"time limit", `"command":"sleep","args":["60"],"timeout":100`, "", 137},
		{"time limit of what it started", `"command":"sh","args":["-c","sleep 60; true"],"timeout":100`, "", 137},
		{"no shell", `"command":"echo","args":["$A","*"]`, "$A *\n", 0},
		{"a character in two writes", `"command":"sh","args":["-c","printf '\\303'; sleep 0.05; printf '\\244'"]`, "ä", 0},
		{"no text", `"command":"printf","args":["\\377x"]`, "\ufffdx", 0},
		{"markup", `"command":"echo","args":["<&>"]`, "<&>\n", 0},
		{"many lines", `"command":"seq","args":["200000"]`, "", 0},
		{"what is in the pipe at its end", `"command":"sh","args":["-c","sleep 60 & head -c 60001 /dev/zero | tr '\\0' x"]`, strings.Repeat("x", 60001), 0},
		{"what it leaves behind", `"command":"sh","args":["-c","sleep 60 & echo left"]`, "left\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := d.send("POST", sessions+sid+"/cmd", `{"wait":true,"logs":true,`+tt.body+`}`).want(200)
			out, code := lines(t, g.body)
			if tt.name == "many lines" {
				if !strings.HasSuffix(out, "199999\n200000\n") || strings.Count(out, "\n") != 200000 {
					t.Errorf("%d lines", strings.Count(out, "\n"))
				}
				out = ""
			}
			if out != tt.out || code != tt.code || g.header.Get("Content-Type") != "application/x-ndjson" {
				t.Errorf("got %q, %d, %s", out, code, g.header.Get("Content-Type"))
			}
		})
	}
	for body, code := range map[string]string{
		`{}`: "bad_request", `{"command":"true","timeout":99}`: "bad_request", `{"command":"true","logs":true}`: "bad_request",
		`{"command":"no-such-program"}`: "executable_not_found", `{"command":"./no-such"}`: "executable_not_found",
		`{"command":"true","cwd":"/no/such"}`: "bad_request", `{"command":"true","args":["a\u0000"]}`: "bad_request",
		`{"command":"true","stdin":"x"}`: "bad_request", `{"command":"/etc/passwd"}`: "bad_request",
	} {
		d.send("POST", sessions+sid+"/cmd", body).want(400, code)
	}
	g := d.send("POST", sessions+sid+"/cmd", `{"command":"no-such-program","wait":true}`)
	if got := g.text("error", "message"); got != "[invalid_argument] executable file not found in $PATH: no-such-program" {
		t.Errorf("got %q", got)
	}
}

// The lines of a stream, as they were recorded from the hosted service.
func TestStreamLines(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false}`)
	g := d.send("POST", sessions+sid+"/cmd", `{"command":"sh","args":["-c","echo out1; exit 3"],"env":{},"sudo":false,"wait":true,"logs":true}`).want(200)
	got := strings.Split(strings.TrimSpace(string(g.body)), "\n")
	if len(got) != 3 || got[1] != `{"data":"out1\n","stream":"stdout"}` {
		t.Fatalf("got %q", got)
	}
	var first, last struct{ Command map[string]any }
	if json.Unmarshal([]byte(got[0]), &first) != nil || json.Unmarshal([]byte(got[2]), &last) != nil {
		t.Fatalf("got %q", got)
	}
	if v, there := first.Command["exitCode"]; v != nil || !there || first.Command["durationMs"] != nil || first.Command["cwd"] != "/vercel" || first.Command["sessionId"] != sid {
		t.Errorf("first line %v", first)
	}
	if id, _ := first.Command["id"].(string); !strings.HasPrefix(id, "cmd_") || len(id) != 32 {
		t.Errorf("id %q", id)
	}
	if last.Command["exitCode"] != 3.0 || last.Command["durationMs"] == nil {
		t.Errorf("last line %v", last)
	}
	g = d.send("POST", sessions+sid+"/cmd?wait=true", `{"command":"echo","args":["a"]}`).want(200)
	if n := strings.Count(string(g.body), "\n"); n != 2 || strings.Contains(string(g.body), "stream") {
		t.Errorf("wait without logs: %s", g.body)
	}
}

// Output comes while the command runs, to as many as ask, from its beginning.
func TestFollow(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false}`)
	g := d.send("POST", sessions+sid+"/cmd", `{"command":"sh","args":["-c","echo one; while ! test -e go; do sleep 0.01; done; echo two; exit 5"]}`).want(200)
	cid := g.text("command", "id")
	if g.at("command", "exitCode") != nil {
		t.Errorf("got %s", g.body)
	}
	follow := func() *bufio.Reader {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, "GET", d.url+"/api"+sessions+sid+"/cmd/"+cid+"/logs", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer t")
		resp, err := d.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return bufio.NewReader(resp.Body)
	}
	readers := []*bufio.Reader{follow(), follow()}
	for _, r := range readers {
		if line, err := r.ReadString('\n'); line != `{"data":"one\n","stream":"stdout"}`+"\n" {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	if g := d.send("GET", sessions+sid+"/cmd/"+cid, nil).want(200); g.at("command", "exitCode") != nil {
		t.Errorf("it runs: %s", g.body)
	}
	d.run(sid, "touch go")
	for _, r := range append(readers, follow()) {
		line, _ := r.ReadString('\n')
		if strings.Contains(line, "one") {
			line, _ = r.ReadString('\n')
		}
		if line != `{"data":"two\n","stream":"stdout"}`+"\n" {
			t.Errorf("got %q", line)
		}
		if rest, _ := r.ReadString(0); rest != "" {
			t.Errorf("after the end: %q", rest)
		}
	}
	if g := d.send("GET", sessions+sid+"/cmd/"+cid+"?wait=true", nil).want(200); g.at("command", "exitCode") != 5.0 {
		t.Errorf("got %s", g.body)
	}
	if g := d.send("GET", sessions+sid+"/cmd", nil).want(200); g.text("commands", 0, "id") != cid || g.text("commands", 1, "name") != "sh" {
		t.Errorf("list: %s", g.body)
	}
	d.send("GET", sessions+sid+"/cmd/cmd_none", nil).want(404, "not_found")
}

func TestKill(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false}`)
	for _, tt := range []struct {
		script, body string
		want         float64
	}{
		{"exec sleep 60", `{"signal":15}`, 143},
		{"exec sleep 60", `{"signal":9}`, 137},
		{"exec sleep 60", ``, 143},
		{"trap 'exit 42' INT; touch ready; while :; do sleep 0.01; done", `{"signal":2}`, 42},
	} {
		cid := d.send("POST", sessions+sid+"/cmd", fmt.Sprintf(`{"command":"sh","args":["-c",%q]}`, tt.script)).want(200).text("command", "id")
		if strings.Contains(tt.script, "ready") {
			d.run(sid, "while ! test -e ready; do sleep 0.01; done")
		}
		if g := d.send("POST", sessions+sid+"/cmd/"+cid+"/kill", tt.body).want(200); g.at("command", "exitCode") != nil {
			t.Errorf("%s: got %s", tt.script, g.body)
		}
		if g := d.send("GET", sessions+sid+"/cmd/"+cid+"?wait=true", nil).want(200); g.at("command", "exitCode") != tt.want {
			t.Errorf("%s: got %s", tt.script, g.body)
		}
		d.send("POST", sessions+sid+"/cmd/"+cid+"/kill", tt.body).want(200)
	}
	d.send("POST", sessions+sid+"/cmd/cmd_none/kill", `{"signal":9}`).want(404, "not_found")
	cid := d.send("POST", sessions+sid+"/cmd", `{"command":"true"}`).want(200).text("command", "id")
	d.send("POST", sessions+sid+"/cmd/"+cid+"/kill", `{"signal":0}`).want(400, "bad_request")
	d.send("POST", sessions+sid+"/cmd/"+cid+"/kill", `{"signal":"TERM"}`).want(400, "bad_request")
}
