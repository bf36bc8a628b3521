//go:build system

package clients

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority is the tests' own certificate authority, with one leaf for all
// names of the world.
type authority struct {
	file     string // the CA's certificate, PEM
	leafFile string // PEM, chain and key, for servers of others
	keyFile  string
	leaf     tls.Certificate
	spki     string // SHA-256 of the leaf's public key, as browsers pin it
}

func newAuthority(dir string, names []string) (*authority, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "egressd client tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(caDER)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(pub)
	a := &authority{
		file: filepath.Join(dir, "ca.pem"), leafFile: filepath.Join(dir, "leaf.pem"), keyFile: filepath.Join(dir, "leaf.key"),
		leaf: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		spki: base64.StdEncoding.EncodeToString(sum[:]),
	}
	for file, block := range map[string]*pem.Block{
		a.file:     {Type: "CERTIFICATE", Bytes: caDER},
		a.leafFile: {Type: "CERTIFICATE", Bytes: der},
		a.keyFile:  {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o644); err != nil {
			return nil, err
		}
	}
	return a, nil
}
