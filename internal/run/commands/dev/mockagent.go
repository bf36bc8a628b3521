package dev

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"egressd/internal/cli"
)

const (
	mockFile     = "MOCK_AGENT.md"
	mockPatience = 30 * time.Second
)

// mockAgent is an agent without a model, for tests of what is around one: it writes
// what it was told into a file, says whether it has got a secret, and asks for a host
// that nobody allows if its prompt has the word network. With the word fail it fails.
func (l launcher) mockAgent(args []string) int {
	if len(args) != 1 {
		return l.Usage(errors.New("dev mock-agent takes one prompt"))
	}
	prompt := args[0]
	secret := "absent"
	if l.Getenv("MOCK_SECRET") != "" {
		secret = "present"
	}
	l.Print(fmt.Sprintf("mock agent received task: %s\n", prompt))
	f, err := os.OpenFile(mockFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "## task\n%s\n\nsecret:%s\n", prompt, secret)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if strings.Contains(prompt, "network") {
		l.Print(l.mockProbe())
	}
	if strings.Contains(prompt, "fail") {
		l.Say("mock agent failing as instructed\n")
		return cli.ExitNo
	}
	return l.Print("mock agent done\n")
}

// mockProbe asks for a host that is not allowed, by the proxy that the environment
// names.
func (l launcher) mockProbe() string {
	host := l.Getenv("MOCK_PROBE_HOST")
	if host == "" {
		host = "denied.example.com"
	}
	by, err := url.Parse(l.Getenv("HTTP_PROXY"))
	if err != nil || by.Host == "" {
		return "network probe failed to reach proxy\n"
	}
	c := &http.Client{Timeout: mockPatience, Transport: &http.Transport{Proxy: http.ProxyURL(by)}}
	defer c.CloseIdleConnections()
	resp, err := c.Get("http://" + host + "/probe")
	if err != nil {
		return "network probe failed to reach proxy\n"
	}
	_ = resp.Body.Close()
	return fmt.Sprintf("network probe status: %d\n", resp.StatusCode)
}
