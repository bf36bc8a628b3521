package ledger

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"egressd/internal/run/receipt/format"
)

// Messages of the ssh agent's protocol, draft-ietf-sshm-ssh-agent, section 6.1.
const (
	agentList      = 11
	agentKeys      = 12
	agentSign      = 13
	agentSignature = 14
)

// keyType is the only type of key that receipts are signed with.
const keyType = "ssh-ed25519"

// agentKey is a key that an ssh agent holds.
type agentKey struct {
	socket string
	blob   []byte // the public key as ssh has it
	public string
}

// fromAgent finds an agent's key by fingerprint or comment.
func (k Keys) fromAgent(ctx context.Context, want string) (format.Key, error) {
	a := &agentKey{socket: k.Agent}
	answer, err := a.ask(ctx, []byte{agentList}, agentKeys)
	if err != nil {
		return nil, fmt.Errorf("the ssh agent: %w", err)
	}
	var have []string
	n := answer.number()
	for range n {
		blob, comment := answer.text(), string(answer.text())
		if answer.short {
			return nil, errors.New("the ssh agent: its list of keys is cut off")
		}
		key := wire{rest: blob}
		typ, public := string(key.text()), key.text()
		if typ != keyType || key.short || len(public) != ed25519.PublicKeySize {
			continue
		}
		sum := sha256.Sum256(blob)
		print := "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
		if have = append(have, print); want != print && want != comment {
			continue
		}
		a.blob = blob
		a.public, err = format.EncodePublic(ed25519.PublicKey(public))
		return a, err
	}
	return nil, fmt.Errorf("the ssh agent: no Ed25519 key %q: it holds %s", want, strings.Join(have, ", "))
}

// PublicPEM implements [format.Key].
func (a *agentKey) PublicPEM() string { return a.public }

// Sign implements [format.Key]. The agent signs the message itself, as it does a
// login's.
func (a *agentKey) Sign(ctx context.Context, message []byte) ([]byte, error) {
	order := appendText(appendText([]byte{agentSign}, a.blob), message)
	answer, err := a.ask(ctx, append(order, 0, 0, 0, 0), agentSignature)
	if err != nil {
		return nil, fmt.Errorf("the ssh agent: %w", err)
	}
	sig := wire{rest: answer.text()}
	typ, value := string(sig.text()), sig.text()
	if answer.short || sig.short || typ != keyType {
		return nil, errors.New("the ssh agent: its signature is none of Ed25519")
	}
	return checked(a.public, message, value)
}

// ask sends one message and reads the answer, which must be of the type want.
func (a *agentKey) ask(ctx context.Context, message []byte, want byte) (*wire, error) {
	if a.socket == "" {
		return nil, errors.New("SSH_AUTH_SOCK is not set: start an agent")
	}
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", a.socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(at)
	}
	if _, err := conn.Write(appendText(nil, message)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || n > maxAnswer {
		return nil, fmt.Errorf("its answer has %d bytes", n)
	}
	answer := make([]byte, n)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	if answer[0] != want {
		return nil, errors.New("it refused")
	}
	return &wire{rest: answer[1:]}, nil
}

// wire reads the fields of a message, RFC 4251, section 5.
type wire struct {
	rest  []byte
	short bool // a field was cut off; all after it are empty
}

func (w *wire) number() uint32 {
	if len(w.rest) < 4 {
		w.short, w.rest = true, nil
		return 0
	}
	n := binary.BigEndian.Uint32(w.rest)
	w.rest = w.rest[4:]
	return n
}

func (w *wire) text() []byte {
	n := w.number()
	if uint64(n) > uint64(len(w.rest)) {
		w.short, w.rest = true, nil
		return nil
	}
	text := w.rest[:n]
	w.rest = w.rest[n:]
	return text
}

func appendText(to, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...) // #nosec: messages of ours are short
}
