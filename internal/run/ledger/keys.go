package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"egressd/internal/run/receipt/format"
)

// Ways to name a key besides a file.
const (
	byCommand = "command:"
	byAgent   = "ssh-agent:"
)

const maxAnswer = 64 << 10 // bytes of a signer's answer

// Keys finds the keys that receipts are signed with.
type Keys struct {
	Default string   // file of the key that is made when none is named
	Agent   string   // socket of the ssh agent; "": there is none
	Environ []string // for a signer command
}

// Open gets the key that spec names: a file (PKCS #8, PEM, nobody else's), a command
// that signs (command:PROGRAM ARG...), a key of the ssh agent (ssh-agent:SHA256:...),
// or "", the default key, which is made the first time. It reports how Open gets the
// same key again, from any directory.
func (k Keys) Open(ctx context.Context, spec string) (key format.Key, again string, err error) {
	switch {
	case spec == "":
		if key, err = k.fromFile(k.Default); errors.Is(err, os.ErrNotExist) {
			key, err = k.generate(k.Default)
		}
		return key, k.Default, err
	case strings.HasPrefix(spec, byCommand):
		key, err = k.fromCommand(ctx, strings.Fields(spec[len(byCommand):]))
		return key, spec, err
	case strings.HasPrefix(spec, byAgent):
		key, err = k.fromAgent(ctx, spec[len(byAgent):])
		return key, spec, err
	}
	if spec, err = filepath.Abs(spec); err != nil {
		return nil, "", err
	}
	key, err = k.fromFile(spec)
	return key, spec, err
}

func (k Keys) fromFile(name string) (format.Key, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err == nil {
		err = private(info)
	}
	var key format.Held
	if err == nil {
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(f, maxAnswer)); err == nil {
			key, err = format.DecodePrivate(text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// generate makes a key that nobody else can read, and its public half beside it.
func (k Keys) generate(name string) (format.Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	text, err := format.EncodePrivate(private)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	key := format.Held(private)
	made, err := os.CreateTemp(filepath.Dir(name), ".key-*") // mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(made.Name()) //nolint:errcheck // it has another name by then
	_, err = made.Write(text)
	if err := errors.Join(err, made.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(made.Name(), name); err != nil {
		if errors.Is(err, os.ErrExist) {
			return k.fromFile(name) // another launch was first
		}
		return nil, err
	}
	return key, os.WriteFile(name+".pub", []byte(key.PublicPEM()), 0o600)
}

// commandKey is a program that signs: with the argument public it prints the public
// key in PEM, with sign it prints the signature of its standard input in base64.
type commandKey struct {
	argv   []string
	env    []string
	public string
}

func (k Keys) fromCommand(ctx context.Context, argv []string) (format.Key, error) {
	if len(argv) == 0 {
		return nil, errors.New("command: names no program")
	}
	c := &commandKey{argv: argv, env: k.Environ}
	text, err := c.ask(ctx, "public", nil)
	if err != nil {
		return nil, err
	}
	public, err := format.DecodePublic(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s public: %w", argv[0], err)
	}
	c.public, err = format.EncodePublic(public)
	return c, err
}

func (c *commandKey) ask(ctx context.Context, what string, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.argv[0], append(append([]string{}, c.argv[1:]...), what)...) // #nosec: the operator names the program
	cmd.Env, cmd.Stdin, cmd.WaitDelay = c.env, bytes.NewReader(input), signTime
	var out, complaint bounded
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w %s", c.argv[0], what, err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}

// bounded keeps the first maxAnswer bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxAnswer - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// PublicPEM implements [format.Key].
func (c *commandKey) PublicPEM() string { return c.public }

// Sign implements [format.Key].
func (c *commandKey) Sign(ctx context.Context, message []byte) ([]byte, error) {
	text, err := c.ask(ctx, "sign", message)
	if err != nil {
		return nil, err
	}
	sig, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s sign: this is not base64: %w", c.argv[0], err)
	}
	return checked(c.public, message, sig)
}

// checked gives back a signature that is one.
func checked(public string, message, sig []byte) ([]byte, error) {
	key, err := format.DecodePublic(public)
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(key, message, sig) {
		return nil, errors.New("the signer gave a signature that its public key does not verify")
	}
	return sig, nil
}
