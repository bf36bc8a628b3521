package handover

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

const probeMark = "EGRESSD_SESSION_PROBE"

// TestMain turns the test binary into the program inside the sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probeMark {
		probe(os.Args[2:])
		return
	}
	code := m.Run()
	if built.base != "" {
		if err := os.RemoveAll(built.base); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// probe does what each word says and prints a line about it:
//
//	get:URL        fetch it without a proxy
//	proxied:URL    fetch it as the environment says
//	until:FILE     wait for the file
//	env:NAME       print the variable
//	cat:FILE       print whether the file holds the session's CA
//	serve:PORT     answer "inside" on that port until the file "stop" is there
func probe(words []string) {
	direct := &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	proxied := &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: proxyHere, DisableKeepAlives: true}}
	for _, w := range words {
		what, arg, _ := strings.Cut(w, ":")
		switch what {
		case "get":
			fmt.Println(w, fetch(direct, arg))
		case "proxied":
			fmt.Println(w, fetch(proxied, arg))
		case "until":
			fmt.Println("waiting", arg)
			until(arg)
		case "env":
			fmt.Println(w, os.Getenv(arg))
		case "cat":
			data, err := os.ReadFile(os.ExpandEnv(arg))
			fmt.Println(w, holdsOurCA(data), err)
		case "serve":
			ln, err := net.Listen("tcp", "127.0.0.1:"+arg)
			if err != nil {
				fmt.Println(w, err)
				continue
			}
			go func() {
				_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") }))
			}()
			fmt.Println(w, "ready")
		}
	}
}

// proxyHere is the proxy that the sandbox names; for loopback names, too.
func proxyHere(*http.Request) (*url.URL, error) { return url.Parse(os.Getenv("HTTP_PROXY")) }

func holdsOurCA(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && strings.HasPrefix(c.Subject.CommonName, "egressd") {
			return true
		}
	}
	return false
}

func fetch(c *http.Client, url string) string {
	resp, err := c.Get(url)
	if err != nil {
		return "failed: " + err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.ReplaceAll(string(body), "\n", " "))
}

// until waits for a file; the kernel has nothing better across a namespace.
func until(path string) {
	for limit := time.Now().Add(patience); time.Now().Before(limit); wait(context.Background(), 5*time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}
