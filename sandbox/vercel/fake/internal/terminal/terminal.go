// Package terminal serves a program on a terminal over a WebSocket, as the hosted
// service does and its own command line expects:
//
//	client, text     {"type":"start","command":..,"args":[..],"env":["K=V"],"cwd":..,"cols":..,"rows":..}
//	client, binary   keys
//	client, text     {"type":"resize","cols":..,"rows":..}
//	server, binary   output
//	server, text     {"type":"exit","code":..}, then the end
//
// The program gets a hangup when the client goes.
package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"

	"egressd/internal/linux/pty"
	"egressd/sandbox/vercel/fake/machine"
)

// Bounds of terminals.
const (
	startLimit = 30 * time.Second
	maxMessage = 1 << 20
	lastOutput = 2 * time.Second // what a program leaves behind may hold its terminal that long
	readBytes  = 32 << 10
)

// Start is what the client wants to run.
type Start struct {
	Command string
	Args    []string
	Env     []string // NAME=VALUE each
	Cwd     string   // "": where sessions begin
	Size    pty.Size
}

// message is a text message in either direction.
type message struct {
	Type    string   `json:"type"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	Cols    uint16   `json:"cols,omitempty"`
	Rows    uint16   `json:"rows,omitempty"`
	Code    *int     `json:"code,omitempty"`
}

// Serve answers r, whose client may have a terminal, and returns when the program
// that run starts has ended.
func Serve(w http.ResponseWriter, r *http.Request, run func(Start) (*machine.Process, error)) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer c.CloseNow() //nolint:errcheck // it is closed already, or lost
	c.SetReadLimit(maxMessage)
	ctx := r.Context()
	start, err := readStart(ctx, c)
	if err != nil {
		_ = c.Close(websocket.StatusPolicyViolation, err.Error())
		return
	}
	p, err := run(start)
	if err != nil {
		notStarted(ctx, c, err)
		return
	}
	relay(ctx, c, p)
}

func readStart(ctx context.Context, c *websocket.Conn) (Start, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	kind, data, err := c.Read(ctx)
	var m message
	if err == nil && (kind != websocket.MessageText || json.Unmarshal(data, &m) != nil || m.Type != "start" || m.Command == "") {
		err = errors.New("the first message is not a start")
	}
	return Start{m.Command, m.Args, m.Env, m.Cwd, pty.Size{Cols: m.Cols, Rows: m.Rows}}, err
}

// relay carries keys and output until the program ends.
func relay(ctx context.Context, c *websocket.Conn, p *machine.Process) {
	var wg sync.WaitGroup
	defer wg.Wait()
	hangUp := sync.OnceFunc(func() { _ = p.Terminal.Close() })
	defer hangUp()
	shown := make(chan struct{})
	wg.Go(func() {
		defer close(shown)
		show(ctx, c, p.Terminal)
	})
	wg.Go(func() {
		defer hangUp() // the client has gone, or all has been said
		keys(ctx, c, p.Terminal)
	})
	var exit machine.Exit
	select {
	case exit = <-p.Exited:
		late := time.NewTimer(lastOutput)
		defer late.Stop()
		select {
		case <-shown:
		case <-late.C:
		}
	case <-shown: // the program has ended or closed its terminal, or the client has gone
		hangUp()
		exit = <-p.Exited
	}
	if exit.Lost {
		_ = c.Close(websocket.StatusGoingAway, "the session has ended")
		return
	}
	exited(ctx, c, exit.Code)
}

// exited tells the client how a program ended, and closes the connection.
func exited(ctx context.Context, c *websocket.Conn, code int) {
	bye, err := json.Marshal(message{Type: "exit", Code: &code})
	if err == nil && c.Write(ctx, websocket.MessageText, bye) == nil {
		_ = c.Close(websocket.StatusNormalClosure, "")
	}
}

// notStarted tells the client why a program does not run.
func notStarted(ctx context.Context, c *websocket.Conn, err error) {
	var inside *machine.Error
	code := map[machine.Kind]int{machine.NoProgram: 127, machine.NotExecutable: 126, machine.BadDirectory: 1}
	if errors.As(err, &inside) && code[inside.Kind] != 0 {
		_ = c.Write(ctx, websocket.MessageBinary, []byte(inside.Text+"\r\n")) // the client has gone
		exited(ctx, c, code[inside.Kind])
		return
	}
	_ = c.Close(websocket.StatusGoingAway, "the session has ended")
}

// show sends what the program prints until nobody can print any more.
func show(ctx context.Context, c *websocket.Conn, terminal io.Reader) {
	buf := make([]byte, readBytes)
	for {
		n, err := terminal.Read(buf)
		if n > 0 && c.Write(ctx, websocket.MessageBinary, buf[:n]) != nil || err != nil {
			return
		}
	}
}

// keys passes on what the client types until it goes.
func keys(ctx context.Context, c *websocket.Conn, terminal *os.File) {
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		var m message
		switch {
		case kind == websocket.MessageBinary:
			_, err = terminal.Write(data)
		case json.Unmarshal(data, &m) == nil && m.Type == "resize":
			err = pty.SetSize(terminal, pty.Size{Cols: m.Cols, Rows: m.Rows})
		}
		if err != nil {
			return
		}
	}
}
