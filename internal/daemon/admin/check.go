package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// maxReasonBytes bounds what is read of an answer.
const maxReasonBytes = 1 << 10

// Check asks the daemon whose admin address is addr (see [ParseAddr]) whether
// it takes traffic. Nil: it does; the error says in one line why not. The caller
// bounds it by ctx.
func Check(ctx context.Context, addr string) error {
	network, address, err := ParseAddr(addr)
	if err != nil {
		return fmt.Errorf("admin address %w", err)
	}
	target, err := dialAddr(network, address)
	if err != nil {
		return fmt.Errorf("admin address %q: %w", addr, err)
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeadBytes,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, target)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return explainFailure(addr, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReasonBytes))
	first, _, _ := strings.Cut(string(body), "\n")
	first = oneLine(first)
	switch {
	case resp.StatusCode == http.StatusOK && err == nil && first == "ready":
		return nil
	case resp.StatusCode == http.StatusServiceUnavailable && first != "":
		return errors.New(first)
	}
	return fmt.Errorf("%s answered %s: is that egressd's admin address?", addr, oneLine(resp.Status))
}

// explainFailure says why nobody answered.
func explainFailure(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("nobody listens at %s: is egressd running, with --admin %s?", addr, addr)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied: run the health check as egressd's user", addr)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not answer in time", addr)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op
	}
	return fmt.Errorf("%s: %w", addr, err)
}
