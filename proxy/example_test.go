package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy"
)

// printed is a sink that prints decisions.
type printed struct{}

func (printed) Emit(e event.Event) error {
	if c, ok := e.Body.(*event.Connection); ok {
		fmt.Println(c.Decision, c.Host, c.Reason)
	}
	return nil
}

// A Server on a listener of its own, and a client that asks it for a host that no
// rule names.
func Example() {
	p, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: "api.example.com"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var current policy.Current
	current.Store(p)
	s := &proxy.Server{Policy: &current, Events: printed{}}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error)
	go func() { served <- s.Serve(ctx, ln) }()

	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.WriteString(c, "CONNECT other.example.com:443 HTTP/1.1\r\nHost: other.example.com:443\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status)
	c.Close()
	cancel()
	<-served
	// Output:
	// blocked other.example.com host_not_listed
	// 403 Blocked by egressd: other.example.com:443: no rule allows this host; ask the user for --allow other.example.com
}
