package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Bounds.
const (
	maxLine  = 1 << 20 // bytes of one message
	maxCalls = 8       // tools that run at a time; more wait
)

// versions of the protocol that the server speaks, the newest first. What it uses of
// them is the same in all.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Errors of JSON-RPC 2.0.
const (
	parseError     = -32700
	invalidRequest = -32600
	noSuchMethod   = -32601
	invalidParams  = -32602
)

// tool is something that an agent may call.
type tool struct {
	name, says string
	reads      bool // it changes nothing
	inputs     []input
	do         func(context.Context, inputs) (string, error)
}

// input is one argument of a tool; all are strings.
type input struct {
	name, says string
	required   bool
}

// inputs are the arguments of a call, by name. What is not given is "".
type inputs map[string]string

// request is one message of the client.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil: a notification, which has no answer
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type object = map[string]any

// Serve answers on in and out, a line a message, until in ends. It closes both, and
// returns when every call has ended.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = in.Close() })
	c := &conn{server: s, tools: s.tools(), out: out, free: make(chan struct{}, maxCalls)}
	err := c.read(ctx, in)
	cancel()
	c.calls.Wait()
	stop()
	return errors.Join(err, c.failed, in.Close(), out.Close())
}

// conn is one connection.
type conn struct {
	server *Server
	tools  []tool
	free   chan struct{} // a place for each call
	calls  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	out    io.Writer
	failed error
}

func (c *conn) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			continue
		}
		var r request
		switch err := json.Unmarshal(line, &r); {
		case err != nil && !json.Valid(line):
			c.fail(nil, parseError, "this is not JSON")
		case err != nil || r.Version != "2.0" || r.Method == "":
			c.fail(r.ID, invalidRequest, "this is no request of JSON-RPC 2.0; batches are not supported")
		case r.ID == nil: // a notification: none needs anything done
		default:
			c.answer(ctx, r)
		}
	}
	if ctx.Err() != nil {
		return nil // in was closed here
	}
	return lines.Err()
}

func (c *conn) answer(ctx context.Context, r request) {
	switch r.Method {
	case "initialize":
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(r.Params, &p) != nil || !slices.Contains(versions, p.ProtocolVersion) {
			p.ProtocolVersion = versions[0]
		}
		c.send(r.ID, "result", object{
			"protocolVersion": p.ProtocolVersion, "capabilities": object{"tools": object{}},
			"serverInfo":   object{"name": "egressd", "title": "egressd gate", "version": c.server.Version},
			"instructions": c.server.Guide,
		})
	case "ping":
		c.send(r.ID, "result", object{})
	case "tools/list":
		all := []object{}
		for _, t := range c.tools {
			all = append(all, t.describe())
		}
		c.send(r.ID, "result", object{"tools": all})
	case "tools/call":
		c.call(ctx, r)
	default:
		c.fail(r.ID, noSuchMethod, fmt.Sprintf("there is no method %q", r.Method[:min(len(r.Method), 64)]))
	}
}

// describe is a tool as tools/list has it.
func (t tool) describe() object {
	properties, required := object{}, []string{}
	for _, in := range t.inputs {
		properties[in.name] = object{"type": "string", "description": in.says}
		if in.required {
			required = append(required, in.name)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return object{
		"name": t.name, "description": t.says, "inputSchema": schema,
		"annotations": object{"readOnlyHint": t.reads, "openWorldHint": !t.reads},
	}
}

// call runs a tool beside others: one that waits for a person does not hold up the rest.
func (c *conn) call(ctx context.Context, r request) {
	var p struct {
		Name      string `json:"name"`
		Arguments inputs `json:"arguments"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		c.fail(r.ID, invalidParams, "name a tool, and give its arguments as strings")
		return
	}
	i := slices.IndexFunc(c.tools, func(t tool) bool { return t.name == p.Name })
	if i < 0 {
		c.fail(r.ID, invalidParams, fmt.Sprintf("there is no tool %q", p.Name[:min(len(p.Name), 64)]))
		return
	}
	t := c.tools[i]
	if wrong := t.wrong(p.Arguments); wrong != "" {
		c.fail(r.ID, invalidParams, wrong)
		return
	}
	select {
	case c.free <- struct{}{}:
	case <-ctx.Done():
		return
	}
	c.calls.Go(func() {
		defer func() { <-c.free }()
		text, err := t.do(ctx, p.Arguments)
		if err != nil {
			text = err.Error()
		}
		c.send(r.ID, "result", object{
			"content": []object{{"type": "text", "text": text[:min(len(text), maxText)]}}, "isError": err != nil,
		})
	})
}

// wrong says what is wrong with the arguments of a call; "": nothing.
func (t tool) wrong(given inputs) string {
	for _, in := range t.inputs {
		if _, ok := given[in.name]; in.required && !ok {
			return fmt.Sprintf("%s needs %s: %s", t.name, in.name, in.says)
		}
	}
	for name := range given {
		if !slices.ContainsFunc(t.inputs, func(in input) bool { return in.name == name }) {
			return fmt.Sprintf("%s has no argument %q", t.name, name[:min(len(name), 64)])
		}
	}
	return ""
}

func (c *conn) fail(id json.RawMessage, code int, message string) {
	c.send(id, "error", object{"code": code, "message": message})
}

// send writes one message. What cannot be written is kept for Serve.
func (c *conn) send(id json.RawMessage, kind string, value any) {
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, kind: value})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.failed == nil {
		_, err = c.out.Write(append(text, '\n'))
	}
	c.failed = errors.Join(c.failed, err)
}
