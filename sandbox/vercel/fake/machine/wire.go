package machine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"egressd/internal/linux/pty"
)

// Bounds of the protocol with the agent.
const (
	maxFrameBytes = 8 << 20 // argv and environment are 2 MiB at most, as JSON
	maxFiles      = 4       // passed with one frame
)

// Operations of the agent.
const (
	opExec    = "exec"    // start a program; files: stdout, stderr, or none for one on a terminal
	opSignal  = "signal"  // to the program of another request
	opOpen    = "open"    // a regular file to read; the answer brings it
	opMkdir   = "mkdir"   //
	opExtract = "extract" // a gzip tar archive; files: where it comes from
	opDial    = "dial"    // a server inside; the answer brings the connection
)

// request is one order to the agent.
type request struct {
	ID        uint64         `json:"id"`
	Op        string         `json:"op"`
	Argv      []string       `json:"argv,omitempty"`
	Env       []string       `json:"env,omitempty"`
	Dir       string         `json:"dir,omitempty"` // of the program; what paths are relative to
	Path      string         `json:"path,omitempty"`
	Recursive bool           `json:"recursive,omitempty"`
	Port      uint16         `json:"port,omitempty"`
	Root      bool           `json:"root,omitempty"`
	Other     *Identity      `json:"other,omitempty"`
	Target    uint64         `json:"target,omitempty"`
	Signal    syscall.Signal `json:"signal,omitempty"`
	Group     bool           `json:"group,omitempty"`
	Terminal  *pty.Size      `json:"terminal,omitempty"` // the program gets one; the answer brings the other end
}

// reply is the agent's word on a request: first that it was done or why not,
// and of a program that was started later how it ended. The very first reply,
// with the number 0, says that the agent is ready.
type reply struct {
	ID     uint64 `json:"id"`
	Err    *Error `json:"err,omitempty"`
	Exited *Exit  `json:"exited,omitempty"`
}

// conn frames JSON values over a unix stream socket: four bytes of length, then
// the value. Files travel with the first byte. send is safe for concurrent use.
type conn struct {
	c  *net.UnixConn
	mu sync.Mutex // serialises frames
}

// newConn takes ownership of f.
func newConn(f *os.File) (*conn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("not a unix socket"), c.Close())
	}
	return &conn{c: u}, nil
}

func (c *conn) close() { _ = c.c.Close() }

func (c *conn) send(v any, files ...*os.File) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrameBytes {
		return fmt.Errorf("%d bytes are too many for one order", len(body))
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) // #nosec: bounded above
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd()) // #nosec: a descriptor
		}
		oob = syscall.UnixRights(fds...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _, err := c.c.WriteMsgUnix(frame, oob, nil)
	for err == nil && n < len(frame) {
		frame = frame[n:]
		n, err = c.c.Write(frame)
	}
	return err
}

// receive reads one value into v, and the files that came with it, which the
// caller closes.
func (c *conn) receive(v any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var head [4]byte
	oob := make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := c.c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	if files, err = parseRights(oob[:oobn]); err != nil {
		return files, err
	}
	if _, err := io.ReadFull(c.c, head[n:]); err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrameBytes {
		return files, errors.New("frame too large")
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c.c, body); err != nil {
		return files, err
	}
	return files, json.Unmarshal(body, v)
}

func parseRights(oob []byte) (files []*os.File, err error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed")) // #nosec: a descriptor
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
