// Package chain binds the events of a run to each other: each entry holds the hash of
// the one before, and the first that of the contract.
//
//	c := chain.New(contractHash)
//	entry, err := c.Append(time.Now(), chain.NetworkConnected{Host: "a.test", Decision: "allowed"})
package chain

import (
	"encoding/json"
	"fmt"
	"time"

	"egressd/internal/run/receipt/canonical"
)

// Version is that of an entry's format.
const Version = "warrant.event.v1"

// Entry is one event of a run, bound to all before it.
type Entry struct {
	Version string          `json:"version"`
	Seq     int             `json:"seq"` // from 0
	Time    string          `json:"ts"`
	Prev    string          `json:"prev"` // hash of the entry before; of the first, the contract's
	Event   json.RawMessage `json:"event"`
	Hash    string          `json:"hash"` // of seq, ts, prev and event
}

// Event is what happened: a value whose JSON has a member type.
type Event interface {
	// EventType is the value of type.
	EventType() string
}

// The events that launch records of a run.
type (
	// RunCreated: there is a contract.
	RunCreated struct{}
	// RunClaimed: a runner has taken it.
	RunClaimed struct {
		RunnerID    string `json:"runnerId"`
		RunnerKeyID string `json:"runnerKeyId"`
	}
	// WorkspaceMaterialized: the workspace is in place.
	WorkspaceMaterialized struct {
		ManifestHash string `json:"manifestHash"`
	}
	// PolicyEvaluated: the policy was asked.
	PolicyEvaluated struct {
		Decision string `json:"decision"` // allow or ask
		Reason   string `json:"reason"`
	}
	// NetworkConnected: a host was asked for.
	NetworkConnected struct {
		Host     string `json:"host"`
		Decision string `json:"decision"` // allowed or blocked
	}
	// SecretReleased: the run has got a secret.
	SecretReleased struct {
		Name  string `json:"name"`
		Scope string `json:"scope"`
	}
	// FileChanged: a file of the workspace differs from the base.
	FileChanged struct {
		Path        string `json:"path"`
		ContentHash string `json:"contentHash"` // 64 zeros: it is gone
	}
	// ArtifactCreated: something came of the run.
	ArtifactCreated struct {
		Kind string `json:"kind"` // diff, log, file, bundle or trace
		Hash string `json:"hash"`
	}
	// BoundaryCrossed: content left the runner, or came to it.
	BoundaryCrossed struct {
		Direction   string `json:"direction"` // in or out
		ContentHash string `json:"contentHash"`
		DataClass   string `json:"dataClass"`
	}
	// CommandExecuted: the program has ended.
	CommandExecuted struct {
		ArgvHash string `json:"argvHash"`
		ExitCode int    `json:"exitCode"`
	}
	// RunCompleted: the last event of a run whose program has ended with 0.
	RunCompleted struct{}
	// RunCancelled: the last event of a run that somebody ended.
	RunCancelled struct {
		Actor string `json:"actor"`
	}
	// RunFailed: the last event of any other run.
	RunFailed struct {
		Failure string `json:"failure"`
		Message string `json:"message"`
	}
)

// EventType implements [Event].
func (RunCreated) EventType() string { return "run.created" }

// EventType implements [Event].
func (RunClaimed) EventType() string { return "run.claimed" }

// EventType implements [Event].
func (WorkspaceMaterialized) EventType() string { return "workspace.materialized" }

// EventType implements [Event].
func (PolicyEvaluated) EventType() string { return "policy.evaluated" }

// EventType implements [Event].
func (NetworkConnected) EventType() string { return "network.connected" }

// EventType implements [Event].
func (CommandExecuted) EventType() string { return "command.executed" }

// EventType implements [Event].
func (SecretReleased) EventType() string { return "secret.released" }

// EventType implements [Event].
func (FileChanged) EventType() string { return "file.changed" }

// EventType implements [Event].
func (ArtifactCreated) EventType() string { return "artifact.created" }

// EventType implements [Event].
func (BoundaryCrossed) EventType() string { return "boundary.crossed" }

// EventType implements [Event].
func (RunCancelled) EventType() string { return "run.cancelled" }

// EventType implements [Event].
func (RunCompleted) EventType() string { return "run.completed" }

// EventType implements [Event].
func (RunFailed) EventType() string { return "run.failed" }

// Chain makes entries. Not safe for concurrent use.
type Chain struct {
	head  string
	count int
	last  time.Time
}

// New begins a chain at the hash of a contract.
func New(contractHash string) *Chain { return &Chain{head: contractHash} }

// Resume is a chain that goes on after entries, which were verified.
func Resume(contractHash string, entries []Entry) *Chain {
	c := New(contractHash)
	if n := len(entries); n > 0 {
		c.head, c.count = entries[n-1].Hash, n
		c.last, _ = time.Parse(time.RFC3339Nano, entries[n-1].Time)
	}
	return c
}

// Check reports an error unless entries are a chain that begins at the hash of a
// contract. No entries are one.
func Check(contractHash string, entries []Entry) error {
	prev := contractHash
	for i, e := range entries {
		if e.Seq != i || e.Prev != prev {
			return fmt.Errorf("event %d does not follow the one before", i)
		}
		hash, err := canonical.Hash(covered{e.Seq, e.Time, e.Prev, e.Event})
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if hash != e.Hash {
			return fmt.Errorf("event %d has another hash than it says", i)
		}
		prev = hash
	}
	return nil
}

// Append makes the next entry. A clock that goes back is held at the time of the
// entry before.
func (c *Chain) Append(at time.Time, e Event) (Entry, error) {
	if at.Before(c.last) {
		at = c.last
	}
	c.last = at
	body, err := eventJSON(e)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{Version: Version, Seq: c.count, Time: Stamp(at), Prev: c.head, Event: body}
	if entry.Hash, err = canonical.Hash(covered{entry.Seq, entry.Time, entry.Prev, entry.Event}); err != nil {
		return Entry{}, err
	}
	c.head, c.count = entry.Hash, c.count+1
	return entry, nil
}

// Head is the hash of the last entry, and the number of entries.
func (c *Chain) Head() (hash string, count int) { return c.head, c.count }

// covered is what the hash of an entry covers.
type covered struct {
	Seq   int             `json:"seq"`
	Time  string          `json:"ts"`
	Prev  string          `json:"prev"`
	Event json.RawMessage `json:"event"`
}

// eventJSON is an event with its type.
func eventJSON(e Event) (json.RawMessage, error) {
	text, err := canonical.Marshal(e)
	if err != nil {
		return nil, err
	}
	v, err := canonical.Parse(text)
	if err != nil {
		return nil, err
	}
	o := v.(canonical.Object)
	o["type"] = e.EventType()
	return canonical.Encode(nil, o)
}

// Stamp writes a time as every text of a receipt has it: UTC, milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
