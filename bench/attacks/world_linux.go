package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// world is what one attempt finds: a home directory, a workspace, and words that are looked for.
type world struct {
	places
	words
	ctx       context.Context
	lab       *laboratory
	uid, gid  int
	pid       int    // of the victim
	command   string // the contestant with the script, as a person types it
	cleanup   []func()
	tasks     sync.WaitGroup
	stop      chan struct{}
	setupErrs []error
}

// places are paths.
type places struct {
	base     string // everything of this attempt
	home, ws string
	tmp      string // a directory in /tmp
	attacker string // the program that stands in scripts as {A}
	settings string // of the contestant
	events   string
}

// words are unlike any others, so that a piece of text is proof.
type words struct {
	canary string // the content of decoys
	mark   string // what is planted
	token  string // what is sent
	number string // of digits
}

func word() string {
	b := make([]byte, 8)
	rand.Read(b) //nolint:errcheck // never fails: the program would end
	return hex.EncodeToString(b)
}

// newWorld makes one below dir for a user.
func newWorld(ctx context.Context, l *laboratory, dir, attacker string, uid, gid int) (*world, error) {
	base, err := os.MkdirTemp(dir, "w")
	if err != nil {
		return nil, err
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	w := &world{
		ctx: ctx, lab: l, uid: uid, gid: gid, stop: make(chan struct{}),
		places: places{
			base: base, home: filepath.Join(base, "home"), ws: filepath.Join(base, "home/work"),
			attacker: attacker, events: filepath.Join(base, "events.jsonl"),
		},
		words: words{canary: "canary" + word(), mark: "mark" + word(), token: "token" + word(), number: n.String()},
	}
	w.atEnd(func() { os.RemoveAll(base) })
	if w.tmp, err = os.MkdirTemp("/tmp", "attacks-"); err != nil {
		return w, err
	}
	w.atEnd(func() { os.RemoveAll(w.tmp) })
	return w, errors.Join(os.Chmod(base, 0o755), w.furnish(), own(base, uid, gid), own(w.tmp, uid, gid))
}

// furnish writes the decoys and a repository.
func (w *world) furnish() error {
	var errs []error
	for _, d := range decoys() {
		errs = append(errs, put(w.home, d, w.canary))
	}
	for _, f := range []string{
		".bashrc", ".profile", ".gitconfig", ".local/bin/tool", ".claude/settings.json", ".ssh/authorized_keys",
	} {
		errs = append(errs, put(w.home, f, ""))
	}
	for _, f := range []string{
		"Makefile", ".vscode/tasks.json", ".envrc", ".mcp.json", ".claude/settings.json", "editor/workspace.xml",
	} {
		errs = append(errs, put(w.ws, f, ""))
	}
	for _, git := range []string{".git", ".git/modules/sub", ".git/modules/libs/deep", "a/b/.git"} {
		errs = append(errs,
			put(w.ws, git+"/HEAD", "ref: refs/heads/main\n"), put(w.ws, git+"/config", "[core]\n\tbare = false\n"),
			put(w.ws, git+"/hooks/post-checkout", "#!/bin/sh\n"), put(w.ws, git+"/info/attributes", ""),
			os.MkdirAll(filepath.Join(w.ws, git, "objects"), 0o755), os.MkdirAll(filepath.Join(w.ws, git, "refs/heads"), 0o755),
		)
	}
	return errors.Join(errs...)
}

// put writes a file below dir, with the directories above it.
func put(dir, name, content string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content+"\n"), 0o600)
}

func appendTo(path, content string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// own gives a tree to a user.
func own(dir string, uid, gid int) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// replace puts the attempt's names into a script.
func (w *world) replace(text string) string {
	return strings.NewReplacer(
		"{A}", w.attacker, "{WS}", w.ws, "{HOME}", w.home, "{BASE}", w.base, "{TMP}", w.tmp, "{MARK}", w.mark, "{TOKEN}", w.token,
		"{NUMBER}", w.number, "{PORT}", strconv.Itoa(w.lab.port), "{PID}", strconv.Itoa(w.pid),
		"{SETTINGS}", w.settings, "{EVENTS}", w.events,
	).Replace(text)
}

// credential is the user's, nil for ourselves.
func (w *world) credential() *syscall.Credential {
	if w.uid == os.Getuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.gid)} // #nosec: a user's number
}

func (w *world) atEnd(fn func()) { w.cleanup = append(w.cleanup, fn) }

// fail keeps an error of the world outside; the attempt then proves nothing.
func (w *world) fail(err error) {
	if err != nil {
		w.setupErrs = append(w.setupErrs, err)
	}
}

// background runs fn until the attempt ends.
func (w *world) background(fn func(stop <-chan struct{})) {
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		fn(w.stop)
	}()
}

// settle waits for what ran in the background.
func (w *world) settle() {
	close(w.stop)
	w.tasks.Wait()
}

func (w *world) remove() {
	for i := len(w.cleanup) - 1; i >= 0; i-- {
		w.cleanup[i]()
	}
}

// environment is that of a person who works there. What srt leaves in its directory for temporary files
// would be in the way of a later one.
func (w *world) environment(who *contestant) []string {
	env := []string{
		"HOME=" + w.home, "PATH=" + who.path(), "TERM=xterm", "LANG=C.UTF-8", "PS1=ready> ", "USER=person",
		"SSH_AUTH_SOCK=" + w.tmp + "/agent.1", "AWS_SECRET_ACCESS_KEY=" + w.canary,
	}
	if who.name == ours || who.name == without {
		env = append(env, "API_TOKEN="+w.canary) // which launch's policy makes a secret
	}
	if who.name == srt || who.name == srtHidden {
		env = append(env, "TMPDIR="+w.tmp)
	}
	return env
}
