package gate

import (
	"bytes"
	"crypto/x509"
	"os"
)

// SystemRoots reports the system's root certificates in PEM, from the files in
// which distributions keep them. Nil: none was found.
func SystemRoots() []byte {
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if data, err := os.ReadFile(path); err == nil && x509.NewCertPool().AppendCertsFromPEM(data) {
			return data
		}
	}
	return nil
}

// Roots reports the system's root certificates and more, in PEM. It is nil if there are
// none of either.
func Roots(more []byte) []byte {
	system := SystemRoots()
	if len(more) == 0 {
		return system
	}
	return bytes.Join([][]byte{system, more}, []byte("\n"))
}
