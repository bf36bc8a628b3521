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

// What a client must not send has an error of JSON-RPC, and the server goes on.
func TestProtocol(t *testing.T) {
	c := open(t, &Server{Version: "1", Guide: "the guide"})
	for _, tt := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":"a","method":"ping"}`, `{"id":"a","jsonrpc":"2.0","result":{}}`},
		{`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`, `"protocolVersion":"2025-03-26"`},
		{`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}`, `"protocolVersion":"` + versions[0] + `"`},
		{`{"jsonrpc":"2.0","id":8,"method":"resources/list"}`, `-32601`},
		{`not json`, `{"error":{"code":-32700,"message":"this is not JSON"},"id":null,"jsonrpc":"2.0"}`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `-32600`},
		{`{"id":1,"method":"ping"}`, `-32600`},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"open","arguments":{}}}`, `there is no tool`},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"why","arguments":{}}}`, `why needs destination`},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"why","arguments":{"destination":7}}}`, `-32602`},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"explain","arguments":{"x":"y"}}}`, `explain has no argument`},
	} {
		if got := c.ask(tt.in); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
	c.say("")
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if text, bad := c.call("explain", `{}`); bad || text != "the guide" {
		t.Errorf("%v, %q", bad, text)
	}
}

// A call that waits for a person holds up no other.
func TestCallsAreApart(t *testing.T) {
	answer := make(chan struct{})
	c := open(t, &Server{Version: "1", Ask: func(ctx context.Context, _ policy.Host, _ uint16) (why.Answer, error) {
		select {
		case <-answer:
		case <-ctx.Done():
		}
		return why.Answer{Text: "late"}, nil
	}})
	c.say(`{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"why","arguments":{"destination":"a.test"}}}`)
	if got := c.ask(`{"jsonrpc":"2.0","id":"quick","method":"ping"}`); !strings.Contains(got, "quick") {
		t.Errorf("got %s", got)
	}
	close(answer)
	if !c.lines.Scan() || !strings.Contains(c.lines.Text(), "late") {
		t.Errorf("got %s", c.lines.Text())
	}
}
