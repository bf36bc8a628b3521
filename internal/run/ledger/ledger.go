// Package ledger keeps the chained record of a run under way on disk, and makes the
// signed receipt of it at the end.
//
//	l, err := ledger.Begin(ledger.Config{Dir: state, Out: "run.json", Key: key, KeySpec: spec, ...})
//	... the run, with l as a sink of its events ...
//	err = l.Close() // writes run.json
//
// Every event is in the journal before the flow goes on. A launcher that is killed
// leaves the journal, and [Recover] finishes it: each run that began ends in one
// receipt.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/execution"
	"egressd/internal/run/receipt/format"
)

// Bounds.
const (
	// maxEntries is how many events are chained. After that a host that is on record
	// already, with the same decision, is not chained again.
	maxEntries = 100_000
	// maxHosts is how many hosts a record takes besides; after that flows to new ones
	// are denied, because they are not on record.
	maxHosts = 100_000

	signTime = 30 * time.Second // for a key to sign
)

// Config is what a run is, as its contract has it.
type Config struct {
	Dir     string     // of journals, private to the user; it is made
	Out     string     // file of the bundle, absolute; nothing may be there
	Key     format.Key // signs the contract and the receipt
	KeySpec string     // how Recover gets the key again

	Session    string   // the run's name in events
	Isolation  string   // process or hermetic
	Argv       []string // the command line, at least a program
	Agent      string   // the kind of agent that it runs; "": a command
	PolicyHash string   // digest of the policy
	Network    format.Network
	User       string
	Now        func() time.Time

	// Order is the contract that somebody else has made, which then counts instead of
	// Argv, Agent, PolicyHash, Network and User; nil: one is made.
	Order *Order
}

// Order is a run that was ordered. Its end is told by [Ledger.End]: more belongs to it
// than a program.
type Order struct {
	Contract format.Contract
	Plane    string        // public key of who ordered it, in PEM; "": not known here
	Events   []chain.Entry // that are on record already; none: the ledger makes the first ones
	Runner   format.Runner
	Hash     string // of the execution
}

// Ledger is the record of one run. It is an [event.Sink], safe for concurrent use.
type Ledger struct {
	config  Config
	head    header
	path    string // of the journal
	journal *os.File

	mu       sync.Mutex
	chain    *chain.Chain
	seen     map[chain.NetworkConnected]bool
	count    int
	began    bool  // a program is about to run
	ended    bool  // the last event is there
	broken   error // of the journal: nothing more is recorded
	execHash string
	exit     *Exit // of a run that was ordered: how its program ended; nil: it has not
}

// Exit is how a program ended.
type Exit struct {
	Code    int
	Failure string // the launcher failed; "": the program ran
}

// header is the first line of a journal.
type header struct {
	Version  int             `json:"version"`
	Out      string          `json:"out"`
	Key      string          `json:"key"`
	Contract format.Contract `json:"contract"`
	Runner   format.Runner   `json:"runner"`
	Public   string          `json:"publicKeyPem"`
	Plane    string          `json:"planePublicKeyPem,omitempty"` // of a run that was ordered
	Ordered  bool            `json:"ordered,omitempty"`
}

const journalVersion = 1

// Begin makes the contract of a run, signs it and begins its journal. The caller
// closes the ledger.
func Begin(ctx context.Context, c Config) (*Ledger, error) {
	if _, err := os.Lstat(c.Out); err == nil {
		return nil, fmt.Errorf("%s exists already: remove it, or name another file", c.Out)
	}
	if info, err := os.Stat(filepath.Dir(c.Out)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s: its directory is not there", c.Out)
	}
	l := &Ledger{config: c, seen: map[chain.NetworkConnected]bool{}}
	take := l.order
	if c.Order != nil {
		take = l.accept
	}
	if err := take(ctx); err != nil {
		return nil, err
	}
	genesis, err := l.head.Contract.Hash()
	if err != nil {
		return nil, err
	}
	l.chain = chain.New(genesis)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	l.path = JournalOf(c.Dir, l.head.Contract.RunID)
	if l.journal, err = create(l.path); err != nil {
		return nil, err
	}
	if err = l.line(l.head); err == nil {
		err = l.first(genesis)
	}
	if err != nil {
		l.discard()
		return nil, err
	}
	return l, nil
}

// first writes the events with which a run begins.
func (l *Ledger) first(genesis string) error {
	begin := []chain.Event{chain.RunCreated{}, chain.RunClaimed{RunnerID: l.head.Runner.RunnerID, RunnerKeyID: l.head.Runner.KeyID}}
	switch o := l.config.Order; {
	case o == nil:
		manifest, err := canonical.Hash(l.head.Contract.Workspace)
		if err != nil {
			return err
		}
		begin = append(begin, chain.WorkspaceMaterialized{ManifestHash: manifest}, chain.PolicyEvaluated{Decision: "allow", Reason: "policy " + l.config.PolicyHash})
	case len(o.Events) > 0:
		begin = nil
		l.chain, l.count = chain.Resume(genesis, o.Events), len(o.Events)
		for _, e := range o.Events {
			if err := l.line(e); err != nil {
				return err
			}
		}
	}
	for _, e := range begin {
		if err := l.append(e); err != nil {
			return err
		}
	}
	return nil
}

// accept takes a contract that was ordered.
func (l *Ledger) accept(context.Context) error {
	o := l.config.Order
	genesis, err := o.Contract.Hash()
	if err == nil {
		err = chain.Check(genesis, o.Events)
	}
	if err != nil {
		return fmt.Errorf("the events of the run so far: %w", err)
	}
	l.execHash = o.Hash
	l.head = header{
		Version: journalVersion, Out: l.config.Out, Key: l.config.KeySpec, Contract: o.Contract, Public: l.config.Key.PublicPEM(),
		Plane: o.Plane, Ordered: true, Runner: o.Runner,
	}
	return nil
}

// order makes the contract: what this user orders from this machine. One key signs
// for both sides, which a reader can see.
func (l *Ledger) order(ctx context.Context) error {
	c := l.config
	now := c.Now()
	id := format.KeyID(c.Key.PublicPEM())
	if len(c.Argv) == 0 {
		return errors.New("there is no command line")
	}
	agent := c.Agent
	if agent == "" {
		agent = "command"
	}
	contract := format.Contract{
		Version: format.VersionContract, RunID: "run_" + strings.ToLower(c.Session), IssuedAt: chain.Stamp(now),
		Issuer: format.Issuer{KeyID: id, Role: format.SignerPlane}, RequestedBy: format.Actor{Kind: "human", ID: c.User},
		Agent: format.Agent{Kind: agent}, Task: format.Task{Prompt: strings.Join(c.Argv, " ")}, Runner: format.Pool{Pool: "local"},
		Workspace:  format.Manifest{Version: format.VersionManifest, UntrackedFiles: []format.ManifestFile{}, DeniedPatterns: []string{}, DeniedPaths: []string{}},
		PolicyHash: c.PolicyHash, Secrets: []format.Secret{}, Network: c.Network, Disclosure: "none",
		Isolation: c.Isolation, ExpiresAt: chain.Stamp(now.Add(time.Hour)),
	}
	contract.Execution = &execution.Execution{Kind: "argv", Command: c.Argv[0], Args: append([]string{}, c.Argv[1:]...), Dir: "."}
	var err error
	if l.execHash, err = execution.HashArgv(c.Argv, "."); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	if err := contract.Sign(ctx, c.Key, format.SignerPlane); err != nil {
		return fmt.Errorf("the receipt's key: %w", err)
	}
	l.head = header{
		Version: journalVersion, Out: c.Out, Key: c.KeySpec, Contract: contract, Public: c.Key.PublicPEM(),
		Runner: format.Runner{RunnerID: "local", KeyID: id, Pool: "local", AttestationTier: "mock", Isolation: c.Isolation},
	}
	return nil
}

// Exit reports how the program of a run that was ordered has ended; nil: it did not
// run.
func (l *Ledger) Exit() *Exit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.exit
}

// Append chains an event of a run that was ordered.
func (l *Ledger) Append(e chain.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errors.New("the run has ended")
	}
	return l.append(e)
}

// End chains the last event of a run that was ordered. After it nothing is chained.
func (l *Ledger) End(e chain.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end(e)
}

// end chains the last event. A failure after the end is of the record, not of the
// run: Close reports it.
func (l *Ledger) end(e chain.Event) error {
	if l.ended {
		return nil
	}
	err := l.append(e)
	l.ended = err == nil
	return err
}

// append chains an event and writes it down.
func (l *Ledger) append(e chain.Event) error {
	if l.broken != nil {
		return l.broken
	}
	entry, err := l.chain.Append(l.config.Now(), e)
	if err == nil {
		l.count++
		err = l.line(entry)
	}
	if err != nil {
		l.broken = fmt.Errorf("the receipt's journal: %w", err)
	}
	return l.broken
}

// line writes one line in one write.
func (l *Ledger) line(v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	if text.Len() > maxLine {
		return fmt.Errorf("a record of %d bytes is too long: %d are the most", text.Len(), maxLine)
	}
	_, err := l.journal.Write(text.Bytes())
	return err
}

// discard takes back a journal of which nothing has come.
func (l *Ledger) discard() {
	_ = os.Remove(l.path)
	_ = l.journal.Close()
}

// Close ends the record and writes the bundle. If that fails, the journal stays, and
// the next start tries again.
func (l *Ledger) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.journal.Close()
	message := "the run did not start"
	if l.began {
		message = "the run ended without a result"
	}
	err := l.end(chain.RunFailed{Failure: "session_failed", Message: message})
	if err == nil {
		err = seal(l.path, l.journal, l.config.Key)
	}
	if err != nil {
		return fmt.Errorf("the receipt %s is not written: %w; the next launch tries again", l.config.Out, err)
	}
	return nil
}
