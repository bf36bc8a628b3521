package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Implementation constants.
const (
	sendTimeout    = time.Second
	maxStatusBytes = 512
)

// Notifier tells the service manager how the service is. Nil, and the zero
// Notifier, tell nobody and never fail. It is safe for concurrent use.
type Notifier struct {
	path     string // of the manager's datagram socket; abstract with a leading @
	watchdog time.Duration
}

// NewNotifier reads NOTIFY_SOCKET and WATCHDOG_USEC from env (os.Environ). No
// NOTIFY_SOCKET is not an error: the notifier is silent then.
func NewNotifier(env []string) (*Notifier, error) { return newNotifier(env, os.Getpid()) }

func newNotifier(env []string, pid int) (*Notifier, error) {
	n := new(Notifier)
	path, ok := lookup(env, "NOTIFY_SOCKET")
	if !ok || path == "" {
		return n, nil
	}
	if len(path) < 2 || path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("service manager: NOTIFY_SOCKET=%q: an absolute path or @NAME is possible", path)
	}
	n.path = path
	usec, ok := lookup(env, "WATCHDOG_USEC")
	if !ok {
		return n, nil
	}
	if forPID, ok := lookup(env, "WATCHDOG_PID"); ok && forPID != strconv.Itoa(pid) {
		return n, nil
	}
	u, err := strconv.ParseUint(usec, 10, 63)
	if err != nil || u == 0 || u > uint64(maxWatchdog/time.Microsecond) {
		return nil, fmt.Errorf("service manager: WATCHDOG_USEC=%q is not a number of microseconds", usec)
	}
	n.watchdog = time.Duration(u) * time.Microsecond
	return n, nil
}

// maxWatchdog is longer than anybody waits, and far from an overflow.
const maxWatchdog = 365 * 24 * time.Hour

// Ready says that the service has started, or has finished reloading.
func (n *Notifier) Ready(status string) error { return n.send("READY=1", statusLine(status)) }

// Reloading says that a reload has begun; Ready ends it. The manager of a
// Type=notify-reload service waits for both.
func (n *Notifier) Reloading() error {
	if n == nil || n.path == "" {
		return nil
	}
	usec, err := monotonicMicroseconds()
	if err != nil {
		return err
	}
	return n.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(usec, 10))
}

// Stopping says that the service is on its way out.
func (n *Notifier) Stopping(status string) error { return n.send("STOPPING=1", statusLine(status)) }

// Extend asks the manager for d more time to start, reload or stop.
func (n *Notifier) Extend(d time.Duration) error {
	return n.send("EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(max(d, 0).Microseconds(), 10))
}

// Watchdog tells the manager that the service is alive, as often as it asked
// for, until ctx ends; it returns at once when the manager did not ask. It keeps
// silent while alive reports an error, so that the manager acts. Nil: always
// alive. An error that sending meets is handed to failed, which may be nil.
func (n *Notifier) Watchdog(ctx context.Context, alive func() error, failed func(error)) {
	if n == nil || n.watchdog <= 0 {
		return
	}
	tick := time.NewTicker(max(n.watchdog/2, time.Millisecond))
	defer tick.Stop()
	for {
		err := error(nil)
		if alive != nil {
			err = alive()
		}
		if err == nil {
			err = n.send("WATCHDOG=1")
		}
		if err != nil && failed != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// statusLine makes one assignment of any text.
func statusLine(text string) string {
	if text == "" {
		return ""
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxStatusBytes {
		text = strings.ToValidUTF8(text[:maxStatusBytes], "")
	}
	return "STATUS=" + text
}

// send sends the assignments that are not empty, in one datagram.
func (n *Notifier) send(assignments ...string) error {
	if n == nil || n.path == "" {
		return nil
	}
	var b strings.Builder
	for _, a := range assignments {
		if a != "" {
			b.WriteString(a + "\n")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", n.path)
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errors.New("it does not read its notify socket")
		}
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}
