package project

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"egressd/policy"
)

// Allow adds rule to the allow list of the policy file at path, and trusts the file as it
// is then. A file that is not there is made, for this user alone; one that is there must
// be trusted.
//
// Threat: what was in the file becomes trusted with the rule, though the person has never
// looked at it, or something writes it at the same time -> only a trusted file is added to,
// and only what was read, with the rule and nothing else, is trusted. Left over: nothing.
func (s Store) Allow(path, rule string) error {
	if s.Dir == "" {
		return errors.New("there is no place to keep trust in: set HOME, or XDG_STATE_HOME")
	}
	old, err := os.ReadFile(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return err
	}
	before := new(policy.Document)
	if !isNew {
		f, err := Read(path)
		if err == nil {
			err = s.judge(f)
		}
		if err != nil {
			return err
		}
		if f.State != Trusted || f.Digest != digest(path, old) {
			return fmt.Errorf("%s is not trusted as it is: look at it, and launch trust it first", path)
		}
		before = f.Whole
	}
	text, err := added(old, rule)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	after, err := policy.ParseFile(path, text)
	if err != nil || !oneMore(before, after, rule) {
		return errors.Join(err, fmt.Errorf("%s: the rule cannot be added without changing more: add it yourself: - %s", path, rule))
	}
	if err := fill(path, text, isNew); err != nil {
		return err
	}
	f, err := Read(path)
	if err != nil {
		return err
	}
	if f.Digest != digest(path, text) {
		return fmt.Errorf("%s was changed at the same time, and is not trusted", path)
	}
	return s.Add(f)
}

// oneMore reports whether after allows what before does, and rule.
func oneMore(before, after *policy.Document, rule string) bool {
	texts := func(d *policy.Document) (all []string) {
		for _, e := range d.Allow {
			all = append(all, e.Text)
		}
		slices.Sort(all)
		return all
	}
	want := append(texts(before), rule)
	slices.Sort(want)
	return slices.Equal(want, texts(after)) && len(before.Deny) == len(after.Deny) && len(before.Presets) == len(after.Presets)
}

// fill writes a file in place: a run holds its name with a mount.
func fill(path string, text []byte, isNew bool) error {
	flags := os.O_WRONLY | syscall.O_NOFOLLOW
	if isNew {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text) // it is longer than what was there
	return errors.Join(err, f.Sync(), f.Close())
}

// added is the text of a policy file with one more rule.
func added(old []byte, rule string) ([]byte, error) {
	item := strconv.QuoteToASCII(rule)
	block := regexp.MustCompile(`(?m)^allow:[ \t]*(#.*)?\n`)
	inline := regexp.MustCompile(`(?m)^allow:[ \t]*\[([^\]\n]*)\]`)
	if at := block.FindIndex(old); at != nil {
		indent := "  "
		if m := regexp.MustCompile(`(?m)\A(?:[ \t]*(?:#.*)?\n)*( *)- `).FindSubmatch(old[at[1]:]); m != nil {
			indent = string(m[1])
		}
		return slices.Concat(old[:at[1]], []byte(indent+"- "+item+"\n"), old[at[1]:]), nil
	}
	if at := inline.FindSubmatchIndex(old); at != nil {
		if len(bytes.TrimSpace(old[at[2]:at[3]])) > 0 {
			item = ", " + item
		}
		return slices.Concat(old[:at[3]], []byte(item), old[at[3]:]), nil
	}
	if bytes.HasPrefix(old, []byte("allow:")) || bytes.Contains(old, []byte("\nallow:")) {
		return nil, errors.New("its allow list is written in a way that launch does not add to: add the rule yourself: - " + rule)
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text + "allow:\n  - " + item + "\n"), nil
}
