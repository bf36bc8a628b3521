package records

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// keyFile holds the key of the seals.
const (
	keyFile  = "key"
	keyBytes = 32
)

// ErrChanged is a record that something else than launch wrote, or an earlier
// launch, which sealed none.
var ErrChanged = errors.New("the record was not written by this launch as it stands")

// Threat: a program that gets at the records after all (with --isolation env,
// through a share, from another machine) writes the flags of the next run, or the
// number of a process that launch is then to kill -> what launch acts upon carries a
// keyed hash; the key lies beside the records, where no program in a sandbox of ours
// reads. Left over: a program outside any sandbox, which could as well replace
// launch.

// key reads the key, and makes it if there is none.
func (s *Store) key() ([]byte, error) {
	f, err := s.root.Open(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.makeKey(); err != nil {
			return nil, err
		}
		f, err = s.root.Open(keyFile)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key := make([]byte, keyBytes+1)
	if n, _ := f.Read(key); n != keyBytes {
		return nil, fmt.Errorf("%s: %w", keyFile, ErrDamaged)
	}
	return key[:keyBytes], nil
}

// makeKey makes the key, unless another launch does at the same time.
func (s *Store) makeKey() error {
	temp := keyFile + "." + rand.Text() + ".new"
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	key := make([]byte, keyBytes)
	rand.Read(key) //nolint:errcheck // it never fails
	_, err = f.Write(key)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		if err = s.root.Link(temp, keyFile); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, s.root.Remove(temp))
}

// Owner is a name of this user of launch for others: random, the same as long as
// the records are there, and of no use for seals.
func (s *Store) Owner() (string, error) {
	id, err := s.seal("owner")
	return id[:min(len(id), ownerLen)], err
}

// ownerLen is the length of an owner's name in hexadecimal digits.
const ownerLen = 16

// seal is the keyed hash of v's JSON.
func (s *Store) seal(v any) (string, error) {
	key, err := s.key()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sealed reports whether given is the seal of v.
func (s *Store) sealed(v any, given string) error {
	want, err := s.seal(v)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(want), []byte(given)) {
		return ErrChanged
	}
	return nil
}

// binding is what a sandbox's next run is made of, as it is read again.
func (b *Sandbox) binding() any {
	words := append([]string{"sandbox", b.Name, b.Tier, b.Workspace, b.Remote.Project, b.Remote.Team}, b.Flags...)
	for i, w := range words {
		words[i] = strings.ReplaceAll(strings.ToValidUTF8(w, "\ufffd"), "\x00", "")
	}
	return words
}

// binding is what somebody who ends the process acts upon.
func (p *Process) binding() any {
	return []any{"process", p.Sandbox, p.ID, p.Metadata.Launcher, p.Metadata.Started}
}

// Trusted reports ErrChanged unless launch wrote what b says of the next run.
func (s *Store) Trusted(b Sandbox) error { return s.sealed(b.binding(), b.Seal) }

// TrustedLauncher reports ErrChanged unless launch wrote which launcher p has.
func (s *Store) TrustedLauncher(p Process) error { return s.sealed(p.binding(), p.Metadata.Seal) }
