package ledger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"egressd/internal/run/receipt"
	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

const (
	suffix   = ".journal"
	maxBytes = 1 << 30 // of a journal
	maxLine  = 1 << 20
)

// seal makes the bundle of a journal that has ended, puts it in its place and
// removes the journal.
func seal(path string, journal *os.File, key format.Key) error {
	head, entries, err := read(journal)
	if err != nil {
		return err
	}
	b, err := bundle(head, entries)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), signTime)
	defer cancel()
	signers := []string{format.SignerRunner}
	if format.KeyID(key.PublicPEM()) == head.Contract.Issuer.KeyID {
		signers = append(signers, format.SignerPlane) // who ordered the run has run it
	}
	for _, signer := range signers {
		if err := b.Receipt.Sign(ctx, key, signer); err != nil {
			return fmt.Errorf("its key: %w", err)
		}
	}
	text, err := canonical.Marshal(b)
	if err != nil {
		return err
	}
	if problems := receipt.Verify(text, receipt.Options{Strict: !head.Ordered, Pending: len(signers) == 1}); len(problems) > 0 {
		return fmt.Errorf("it does not verify: %s", strings.Join(problems, "; "))
	}
	if err := place(head.Out, append(text, '\n')); err != nil {
		return err
	}
	return os.Remove(path)
}

// bundle is the receipt of entries, unsigned, with all that belongs to it.
func bundle(head header, entries []chain.Entry) (format.Bundle, error) {
	genesis, err := head.Contract.Hash()
	if err != nil {
		return format.Bundle{}, err
	}
	manifest, err := canonical.Hash(head.Contract.Workspace)
	if err != nil {
		return format.Bundle{}, err
	}
	if len(entries) == 0 {
		return format.Bundle{}, errors.New("its journal has no events")
	}
	last := entries[len(entries)-1]
	plane := head.Public
	if head.Ordered {
		plane = head.Plane
	}
	r := format.Receipt{
		Version: format.VersionReceipt, RunID: head.Contract.RunID, ContractHash: genesis, Runner: head.Runner,
		StartedAt: entries[0].Time, EndedAt: last.Time, Status: format.StatusFailed,
		EventsHead: last.Hash, EventCount: len(entries),
		WorkspaceIn:     format.WorkspaceIn{BaseRef: head.Contract.Workspace.BaseRef, ManifestHash: manifest},
		WorkspaceOut:    format.WorkspaceOut{ArtifactHashes: []string{}},
		SecretsReleased: []format.Released{}, ModelsUsed: []format.Model{}, BoundaryDisclosures: []format.Disclosure{},
		NetworkAccessed: []format.NetworkAccess{},
	}
	seen := map[format.NetworkAccess]bool{}
	for _, e := range entries {
		var body struct {
			Type string `json:"type"`
			format.NetworkAccess
			format.Released
			format.Disclosure
			format.Model
			Kind string `json:"kind"`
			Hash string `json:"hash"`
		}
		if err := json.Unmarshal(e.Event, &body); err != nil {
			return format.Bundle{}, err
		}
		switch {
		case body.Type == "run.completed":
			r.Status = format.StatusCompleted
		case body.Type == "run.cancelled":
			r.Status = format.StatusCancelled
		case body.Type == "secret.released":
			r.SecretsReleased = append(r.SecretsReleased, format.Released{Name: body.Name, Scope: body.Scope, Time: e.Time})
		case body.Type == "boundary.crossed":
			r.BoundaryDisclosures = append(r.BoundaryDisclosures, body.Disclosure)
		case body.Type == "model.called" && !slices.Contains(r.ModelsUsed, body.Model):
			r.ModelsUsed = append(r.ModelsUsed, body.Model)
		case body.Type == "artifact.created":
			if body.Kind == "diff" {
				r.WorkspaceOut.DiffHash = body.Hash
			}
			r.WorkspaceOut.ArtifactHashes = append(r.WorkspaceOut.ArtifactHashes, body.Hash)
		case body.Type == "network.connected" && !seen[body.NetworkAccess]:
			seen[body.NetworkAccess] = true
			r.NetworkAccessed = append(r.NetworkAccessed, body.NetworkAccess)
		}
	}
	return format.Bundle{
		Version: format.VersionBundle, Contract: head.Contract, Receipt: r, Events: entries,
		Keys: format.Keys{Plane: plane, Runner: head.Public},
	}, nil
}

// read reads a journal. A last line without its end was never told to anybody and
// does not count.
func read(journal *os.File) (head header, entries []chain.Entry, err error) {
	lines := bufio.NewReaderSize(io.NewSectionReader(journal, 0, maxBytes), maxLine)
	for first := true; ; first = false {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			if first {
				return head, nil, errors.New("the journal has no first line")
			}
			return head, entries, nil
		case err != nil:
			return head, nil, err
		}
		if first {
			err = json.Unmarshal(line, &head)
			if err == nil && head.Version != journalVersion {
				err = fmt.Errorf("a journal of version %d, not %d", head.Version, journalVersion)
			}
		} else {
			var e chain.Entry
			err = json.Unmarshal(line, &e)
			e.Event = bytes.Clone(e.Event)
			entries = append(entries, e)
		}
		if err != nil {
			return head, nil, err
		}
	}
}

// Tail reads the entries of a journal under way from an offset on, 0 at first, and the
// offset behind the last whole one. A journal that is not there has none.
func Tail(path string, offset int64) (entries []chain.Entry, next int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, offset, err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(io.NewSectionReader(f, offset, maxBytes), maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return entries, offset, nil
		}
		if err != nil {
			return entries, offset, err
		}
		if offset > 0 { // the first line is the header
			var e chain.Entry
			if err := json.Unmarshal(line, &e); err != nil {
				return entries, offset, err
			}
			e.Event = bytes.Clone(e.Event)
			entries = append(entries, e)
		}
		offset += int64(len(line))
	}
}

// JournalOf is the journal of a run in a directory of journals.
func JournalOf(dir, runID string) string { return filepath.Join(dir, runID+suffix) }

// place puts a file in its place, whole or not at all.
func place(name string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".receipt-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// Recover finishes the journals in dir whose launchers are gone: each gets its last
// event and becomes a receipt. keys gives the key of a run again. done is told what
// became of each, with an error if its journal stays.
func Recover(dir string, keys func(spec string) (format.Key, error), now func() time.Time, done func(out string, err error)) {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return // the pattern is right
	}
	for _, name := range names {
		journal, err := claim(name)
		if errors.Is(err, ErrInUse) || errors.Is(err, os.ErrNotExist) {
			continue // its launcher lives, or another one has just finished it
		}
		if err != nil {
			done(name, err)
			continue
		}
		out, err := finish(name, journal, keys, now)
		_ = journal.Close()
		if out == "" {
			out = name
		}
		done(out, err)
	}
}

// finish ends a journal that was left, and seals it.
func finish(path string, journal *os.File, keys func(string) (format.Key, error), now func() time.Time) (out string, err error) {
	head, entries, err := read(journal)
	if err != nil {
		if info, serr := journal.Stat(); serr == nil && info.Size() == 0 {
			return "", os.Remove(path) // killed before its first line: no run began
		}
		return "", err
	}
	key, err := keys(head.Key)
	if err != nil {
		return head.Out, err
	}
	if id := format.KeyID(key.PublicPEM()); id != head.Runner.KeyID {
		return head.Out, fmt.Errorf("key %s is not the %s that the run began with", id, head.Runner.KeyID)
	}
	l := &Ledger{config: Config{Key: key, Now: now, Out: head.Out}, head: head, path: path, journal: journal}
	genesis, err := head.Contract.Hash()
	if err != nil {
		return head.Out, err
	}
	if err := trim(journal); err != nil {
		return head.Out, err
	}
	l.chain = chain.Resume(genesis, entries)
	if !over(entries) {
		if err := l.append(chain.RunFailed{Failure: "session_failed", Message: "the launcher was killed"}); err != nil {
			return head.Out, err
		}
	}
	return head.Out, seal(path, journal, key)
}

// over reports whether a run has its last event.
func over(entries []chain.Entry) bool {
	var e struct {
		Type string `json:"type"`
	}
	n := len(entries)
	if n == 0 || json.Unmarshal(entries[n-1].Event, &e) != nil {
		return false
	}
	return e.Type == "run.completed" || e.Type == "run.failed" || e.Type == "run.cancelled"
}

// trim cuts off a last line without its end, and leaves the offset at the end.
func trim(journal *os.File) error {
	info, err := journal.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	b := make([]byte, 1)
	for ; end > 0; end-- {
		if _, err := journal.ReadAt(b, end-1); err != nil {
			return err
		}
		if b[0] == '\n' {
			break
		}
	}
	if err := journal.Truncate(end); err != nil {
		return err
	}
	_, err = journal.Seek(end, io.SeekStart)
	return err
}
