package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"egressd/internal/run/why"
	"egressd/policy"
)

// session speaks to a Server as an agent does, in lines of JSON-RPC.
type session struct {
	t     *testing.T
	to    io.Writer
	lines *bufio.Scanner
}

func open(t *testing.T, s *Server) *session {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), in, out) }()
	t.Cleanup(func() {
		_ = toServer.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = fromServer.Close()
	})
	c := &session{t: t, to: toServer, lines: bufio.NewScanner(fromServer)}
	c.lines.Buffer(nil, 1<<20)
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *session) say(line string) {
	if _, err := io.WriteString(c.to, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// ask reports the result of one request.
func (c *session) ask(line string) string {
	c.t.Helper()
	c.say(line)
	if !c.lines.Scan() {
		c.t.Fatalf("no answer to %s: %v", line, c.lines.Err())
	}
	return c.lines.Text()
}

// call calls a tool with arguments, and reports its text.
func (c *session) call(name, arguments string) (text string, isError bool) {
	c.t.Helper()
	answer := c.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`)
	var got struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Result.Content) != 1 {
		c.t.Fatalf("%s: %v: %s", name, err, answer)
	}
	return got.Result.Content[0].Text, got.Result.IsError
}

func TestServer(t *testing.T) {
	s := &Server{
		Version: "1", Guide: "the guide",
		Ask: func(_ context.Context, host policy.Host, port uint16) (why.Answer, error) {
			if host.Name() == "gone.test" {
				return why.Answer{}, errors.New("the gate does not answer")
			}
			return why.Answer{Allowed: port == 443, Text: "about " + host.Name() + "\n"}, nil
		},
		Denials: func() (string, error) { return "a.test:443   once\n", nil },
	}
	c := open(t, s)
	tools := c.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	for _, name := range []string{`"explain"`, `"why"`, `"list_denials"`, `"request_approval"`} {
		if !strings.Contains(tools, `"name":`+name) {
			t.Errorf("no tool %s in %s", name, tools)
		}
	}
	for _, tt := range []struct {
		tool, in, want string
		bad            bool
	}{
		{"explain", `{}`, "the guide", false},
		{"explain", `{"message":"Reason: no rule (port_not_listed)."}`, "port_not_listed: rules name this host, but not this port\n\nthe guide", false},
		{"why", `{"destination":"db.test:5432"}`, "about db.test\n", false},
		{"why", `{"destination":"gone.test"}`, "the gate does not answer", true},
		{"why", `{"destination":"a b"}`, `"a b"`, true},
		{"list_denials", `{}`, "a.test:443   once\n", false},
		{"request_approval", `{"destination":"https://a.test/x","purpose":"p"}`, "Allowed: go on.\nabout a.test\n", false},
		{"request_approval", `{"destination":"a.test:22","purpose":"to push"}`, "Not allowed. Stop here, and tell the user what it is needed for (to push)", false},
	} {
		if text, bad := c.call(tt.tool, tt.in); !strings.Contains(text, tt.want) || bad != tt.bad {
			t.Errorf("%s %s: %v, %q", tt.tool, tt.in, bad, text)
		}
	}
}

// Without a record there is a word about how to have one; long input is cut or
// refused, and the server goes on.
func TestServerBounds(t *testing.T) {
	c := open(t, &Server{Version: "1", Guide: "the guide", Ask: func(context.Context, policy.Host, uint16) (why.Answer, error) {
		return why.Answer{Text: strings.Repeat("x", 10*maxText)}, nil
	}})
	if text, bad := c.call("list_denials", `{}`); !bad || !strings.Contains(text, "launch mcp --events FILE") {
		t.Errorf("%v, %q", bad, text)
	}
	long := strings.Repeat("y", 4*maxText)
	if text, bad := c.call("why", `{"destination":"`+long+`"}`); !bad || text != "the destination is too long" {
		t.Errorf("%v, %d bytes", bad, len(text))
	}
	if text, _ := c.call("explain", `{"message":"`+long+`"}`); text != "the guide" {
		t.Errorf("%d bytes", len(text))
	}
	if text, _ := c.call("why", `{"destination":"a.test"}`); len(text) != maxText {
		t.Errorf("%d bytes", len(text))
	}
}
