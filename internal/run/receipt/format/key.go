package format

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"

	"egressd/internal/run/receipt/canonical"
)

// Key signs. Implementations are safe for concurrent use.
type Key interface {
	// PublicPEM is the public key, in the form that [EncodePublic] gives.
	PublicPEM() string
	// Sign signs message with Ed25519 (RFC 8032, pure).
	Sign(ctx context.Context, message []byte) ([]byte, error)
}

// Held is a key that this process holds.
type Held ed25519.PrivateKey

// PublicPEM implements [Key].
func (k Held) PublicPEM() string {
	text, err := EncodePublic(ed25519.PrivateKey(k).Public().(ed25519.PublicKey))
	if err != nil {
		return "" // no key of the right length fails
	}
	return text
}

// Sign implements [Key].
func (k Held) Sign(_ context.Context, message []byte) ([]byte, error) {
	return ed25519.Sign(ed25519.PrivateKey(k), message), nil
}

// EncodePublic writes a public key as PEM (SubjectPublicKeyInfo).
func EncodePublic(key ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// DecodePublic reads what EncodePublic writes.
func DecodePublic(text string) (ed25519.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("this is no public key in PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := key.(ed25519.PublicKey); ok {
		return key, nil
	}
	return nil, errors.New("this is no Ed25519 key")
}

// EncodePrivate writes a private key as PEM (PKCS #8).
func EncodePrivate(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// DecodePrivate reads what EncodePrivate and openssl write.
func DecodePrivate(text []byte) (Held, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("this is no private key in PEM (PKCS #8): make one with openssl genpkey -algorithm ed25519")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := key.(ed25519.PrivateKey); ok {
		return Held(key), nil
	}
	return nil, errors.New("this is no Ed25519 key: make one with openssl genpkey -algorithm ed25519")
}

// KeyID names a public key: the beginning of the hash of its trimmed PEM.
func KeyID(publicPEM string) string {
	return "ed25519:" + canonical.Sum([]byte(strings.TrimSpace(publicPEM)))[:16]
}

// Signed reports whether a signature in base64 is that of a key over message.
func Signed(keyPEM, message, value string) bool {
	key, err := DecodePublic(keyPEM)
	if err != nil {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	return err == nil && ed25519.Verify(key, []byte(message), raw)
}
