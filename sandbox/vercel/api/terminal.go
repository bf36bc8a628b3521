package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Terminal is a program that runs on a terminal in a session: its output comes as
// the terminal's, standard output and error in one. Write, Resize and Read may be
// called at the same time, each by one goroutine. The caller closes it.
type Terminal struct {
	ws *websocket.Conn
	c  *Client
}

// TerminalRequest says what to run on a terminal.
type TerminalRequest struct {
	Command    string
	Args       []string
	Env        map[string]string
	Cwd        string // "": the session's own
	Cols, Rows uint16
}

// Bounds of terminals.
const (
	terminalDial  = 30 * time.Second // for everything until the program is asked for
	terminalWrite = 30 * time.Second // for one message
	maxOutput     = 4 << 20          // bytes in one message
)

// terminalMessage is a text message in either direction.
type terminalMessage struct {
	Type    string   `json:"type"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	Cols    uint16   `json:"cols,omitempty"`
	Rows    uint16   `json:"rows,omitempty"`
	Code    *int     `json:"code,omitempty"`
}

// Terminal starts a program on a terminal. Whoever calls it twice runs it twice.
// The program ends (SIGHUP) when the connection does; there is no way back to it.
//
// Threat: the answer names an address to which the terminal's token, keys and the
// program's variables go -> it must be wss://, or ws:// on this machine if BaseURL
// is on this machine, too; redirects are not followed, and the token is in no
// error. Left over: the service chooses the host.
func (c *Client) Terminal(ctx context.Context, session string, r TerminalRequest) (*Terminal, error) {
	const op = "open terminal"
	ctx, done := context.WithTimeout(ctx, terminalDial)
	defer done()
	var at struct {
		URL   string `json:"url"`
		Token string `json:"token"`
	}
	if err := c.session(ctx, call{op: op, method: http.MethodPost, in: struct{}{}, repeat: always}, session, "/interactive", &at); err != nil {
		return nil, err
	}
	u, err := c.terminalURL(at.URL)
	if err != nil || at.Token == "" {
		return nil, fmt.Errorf("%s: the service's answer names no place for a terminal: %w", op, cmp.Or(err, errNoToken))
	}
	u.RawQuery = url.Values{"token": {at.Token}}.Encode()
	ws, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPClient: c.upgrading()})
	if err != nil {
		if resp != nil {
			return nil, &Error{Op: op, SessionID: session, Status: resp.StatusCode, Message: "the terminal's connection was refused"}
		}
		return nil, fmt.Errorf("%s: %s", op, strings.ReplaceAll(c.clean(err.Error()), url.QueryEscape(at.Token), "[token]"))
	}
	ws.SetReadLimit(maxOutput)
	t := &Terminal{ws: ws, c: c}
	env := []string{}
	for k, v := range r.Env {
		env = append(env, k+"="+v)
	}
	args := append([]string{}, r.Args...)
	if err := t.say(ctx, terminalMessage{Type: "start", Command: r.Command, Args: args, Env: env, Cwd: r.Cwd, Cols: r.Cols, Rows: r.Rows}); err != nil {
		t.Close()
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return t, nil
}

var errNoToken = errors.New("it has no token")

// terminalURL reports where a terminal is, if keys may go there.
func (c *Client) terminalURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("its address is not one")
	case u.Scheme == "wss":
		return u, nil
	case u.Scheme == "ws" && c.base.Scheme == "http" && isLoopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("its address is not wss://")
}

// upgrading is the client for connections that become WebSockets, which HTTP/2
// has none of here.
func (c *Client) upgrading() *http.Client {
	h := *c.http
	if t, ok := h.Transport.(*http.Transport); ok {
		t = t.Clone()
		t.ForceAttemptHTTP2, t.DisableKeepAlives = false, true
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		h.Transport = t
	}
	return &h
}

func (t *Terminal) say(ctx context.Context, m terminalMessage) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return t.write(ctx, websocket.MessageText, data)
}

func (t *Terminal) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, done := context.WithTimeout(ctx, terminalWrite)
	defer done()
	return t.lost(t.ws.Write(ctx, kind, data))
}

// lost cleans an error of the connection.
func (t *Terminal) lost(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(t.c.clean(err.Error()))
}

// Write sends keys.
func (t *Terminal) Write(ctx context.Context, keys []byte) error {
	return t.write(ctx, websocket.MessageBinary, keys)
}

// Resize tells the program the size of its terminal.
func (t *Terminal) Resize(ctx context.Context, cols, rows uint16) error {
	return t.say(ctx, terminalMessage{Type: "resize", Cols: cols, Rows: rows})
}

// Alive reports an error when the other side does not answer; Read must be waiting.
func (t *Terminal) Alive(ctx context.Context) error { return t.lost(t.ws.Ping(ctx)) }

// Read returns the next output, or how the program ended: an exit code and no
// output. An error is the end of the connection.
func (t *Terminal) Read(ctx context.Context) (output []byte, exit *int, err error) {
	for {
		kind, data, err := t.ws.Read(ctx)
		if err != nil {
			return nil, nil, t.lost(err)
		}
		var m terminalMessage
		switch {
		case kind == websocket.MessageBinary:
			return data, nil, nil
		case json.Unmarshal(data, &m) != nil:
			return data, nil, nil // the service's own client prints such text
		case m.Type == "exit" && m.Code != nil:
			return nil, m.Code, nil
		}
	}
}

// Close ends the connection, and the program.
func (t *Terminal) Close() { _ = t.ws.CloseNow() } // the program is hung up either way
