package otlp

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"time"
)

// maxHeaders bounds the file of headers, in bytes.
const maxHeaders = 64 << 10

// Files are what an operator says of a collector in files; "": nothing.
type Files struct {
	Headers string // lines of NAME: VALUE, such as a token
	CA      string // authorities in PEM, besides the system's
}

// New is a client for the collector at url, whose path may be left out. The headers
// are for this receiver alone: redirections are not followed.
func New(url string, files Files, version string) (*Client, error) {
	header, err := readHeaders(files.Headers)
	if err != nil {
		return nil, err
	}
	roots, err := rootsWith(files.CA)
	if err != nil {
		return nil, err
	}
	if url, err = ParseURL(url, len(header) > 0); err != nil {
		return nil, err
	}
	return &Client{
		URL: url, Header: header, Version: version,
		HTTP: &http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// readHeaders reads lines of NAME: VALUE.
func readHeaders(name string) (http.Header, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeaders {
		return nil, fmt.Errorf("%s is longer than %d bytes", name, maxHeaders)
	}
	text = append(bytes.TrimSpace(text), "\r\n\r\n"...)
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil {
		return nil, fmt.Errorf("%s: lines of NAME: VALUE, please: %w", name, err)
	}
	return http.Header(h), nil
}

// rootsWith are the system's authorities and those in a file; nil: the system's.
func rootsWith(name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", name)
	}
	return roots, nil
}
