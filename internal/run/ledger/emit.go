package ledger

import (
	"errors"
	"fmt"

	"egressd/event"
	"egressd/internal/run/receipt/chain"
)

// Emit implements [event.Sink]: it chains what concerns the run's receipt.
func (l *Ledger) Emit(e event.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	switch b := e.Body.(type) {
	case *event.Connection, *event.Query, *event.Packet:
		return l.network(e)
	case *event.Command:
		l.began = true
	case *event.RunCompleted:
		return l.finished(b.ExitCode)
	case *event.RunFailed:
		if l.config.Order != nil {
			l.exit = &Exit{Code: b.ExitCode, Failure: b.Error}
			return nil
		}
		return l.end(chain.RunFailed{Failure: "session_failed", Message: b.Error})
	}
	return nil
}

// network chains a decision about a host. DNS questions that are allowed lead
// nowhere yet; the connection is what counts.
func (l *Ledger) network(e event.Event) error {
	n := chain.NetworkConnected{Decision: event.Blocked.String()}
	if e.Allowed() {
		n.Decision = event.Allowed.String()
	}
	switch b := e.Body.(type) {
	case *event.Connection:
		switch {
		case !b.Host.IsZero():
			n.Host = b.Host.String()
		case !b.Server.IsZero():
			n.Host = b.Server.String()
		case b.Addr.IsValid():
			n.Host = b.Addr.Addr().String()
		}
	case *event.Query:
		if e.Allowed() {
			return nil
		}
		if n.Host = b.Asked; !b.Host.IsZero() {
			n.Host = b.Host.String()
		}
	case *event.Packet:
		if b.Dst.IsValid() {
			n.Host = b.Dst.String()
		}
	}
	switch {
	case n.Host == "":
		return nil // nobody was named
	case l.count < maxEntries:
	case l.seen[n]:
		return nil
	case l.count >= maxEntries+maxHosts:
		return errors.New("the receipt of this run is full: no more hosts are recorded")
	}
	l.seen[n] = true
	return l.append(n)
}

func (l *Ledger) finished(exitCode int) error {
	if err := l.append(chain.CommandExecuted{ArgvHash: l.execHash, ExitCode: exitCode}); err != nil {
		return err
	}
	if l.config.Order != nil {
		l.exit = &Exit{Code: exitCode}
		return nil
	}
	if exitCode != 0 {
		return l.end(chain.RunFailed{Failure: "session_failed", Message: fmt.Sprintf("agent exited with code %d", exitCode)})
	}
	return l.end(chain.RunCompleted{})
}
