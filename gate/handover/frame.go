package handover

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// kind says what a frame is.
type kind byte

const (
	kindHello   kind = 'H' // launcher: who it is, and what it asks for
	kindReady   kind = 'R' // daemon: accepted
	kindRefused kind = 'X' // daemon: refused, and why
	kindDoors   kind = 'D' // launcher: the sockets
	kindServing kind = 'S' // daemon: they are served
	kindEvent   kind = 'E' // daemon: number, event
	kindAck     kind = 'A' // launcher: number, whether the event is on record
	kindAsk     kind = 'Q' // daemon: number, a flow that no rule covers
	kindCancel  kind = 'C' // daemon: number of a question that is taken back
	kindAnswer  kind = 'Y' // launcher: number, whether the person allows it
	kindEnd     kind = 'Z' // daemon: nothing follows
)

const headBytes = 5

var (
	errTooLong = errors.New("a message is longer than this side takes")
	errForeign = errors.New("the other side does not speak the session protocol of egressd")
)

// link is one end of the connection. Frames may be sent from several
// goroutines; one at a time receives.
type link struct {
	c   *net.UnixConn
	in  io.Reader // c, buffered or not
	out sync.Mutex
}

// frame encodes one frame.
func frame(k kind, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, headBytes+len(body)), uint32(len(body)))
	return append(append(b, byte(k)), body...)
}

// send writes one frame, with files on its first byte.
func (l *link) send(k kind, body []byte, files ...*os.File) error {
	l.out.Lock()
	defer l.out.Unlock()
	b := frame(k, body)
	if len(files) == 0 {
		_, err := l.c.Write(b)
		return err
	}
	return l.sendFiles(b, files)
}

// sendJSON sends v as JSON.
func (l *link) sendJSON(k kind, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.send(k, body)
}

// receive reads one frame of at most most bytes.
func (l *link) receive(most int) (kind, []byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return 0, nil, err
	}
	return l.body(head, most)
}

// body reads what follows head. Memory grows with what arrives, not with what
// is announced.
func (l *link) body(head [headBytes]byte, most int) (kind, []byte, error) {
	size := int64(binary.BigEndian.Uint32(head[:4]))
	if size > int64(most) {
		return 0, nil, fmt.Errorf("%w: %d bytes, at most %d", errTooLong, size, most)
	}
	var b bytes.Buffer
	n, err := io.CopyN(&b, l.in, size)
	if err != nil && n < size {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return kind(head[4]), b.Bytes(), nil
}

// expect receives a frame of kind want into v, strictly. A refusal frame is
// reported as a *RefusedError.
func (l *link) expect(want kind, most int, v any) error {
	k, body, err := l.receive(most)
	if err != nil {
		return err
	}
	return decodeFrame(want, k, body, v)
}

func decodeFrame(want, k kind, body []byte, v any) error {
	switch k {
	case want:
		return strictJSON(body, v)
	case kindRefused:
		var r refusal
		if err := strictJSON(body, &r); err != nil {
			return errForeign
		}
		return &RefusedError{Why: r.Why}
	}
	return errForeign
}

// strictJSON decodes one value, all of whose fields must be known.
func strictJSON(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errForeign
	}
	return nil
}

// numbered puts a number in front of a body.
func numbered(n uint64, body []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(body)), n), body...)
}

// splitNumber takes it off again.
func splitNumber(b []byte) (n uint64, body []byte, ok bool) {
	if len(b) < 8 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(b), b[8:], true
}
