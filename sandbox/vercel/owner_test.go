package vercel

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
	"egressd/sandbox/vercel/network"
)

var (
	alice = Owner{ID: "a11ce00000000000", Who: "alice@desk"}
	bob   = Owner{ID: "b0b0000000000000", Who: "bob@laptop"}
)

// shared is a project in which alice has a sandbox called box, and the backend of
// bob, who has a workspace of his own.
func shared(t *testing.T, keep bool) (*world, *world) {
	a, _ := named(t, fake.Config{})
	a.files("secret.env", "alice's")
	a.back.Owner, a.back.Keep, a.back.Network = alice, keep, &network.Network{Names: []string{"alice.example.com"}}
	a.ok(0, "echo hers >made; echo more >/vercel/more")
	b := newWorld(t, fake.Config{})
	b.api, b.client, b.back.Client = a.api, a.client, a.client
	b.back.Name, b.back.Owner, b.back.Synced = "box", bob, &memory{}
	b.back.Session += "-b"
	a.calls()
	return a, b
}

// isForeign checks that bob's run was refused, and that it asked and changed
// nothing.
func (w *world) isForeign(err error, words ...string) {
	w.Helper()
	var foreign *ForeignError
	if !errors.As(err, &foreign) {
		w.Fatalf("%v\n%q", err, w.calls())
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.Errorf("%q is not in: %v", word, err)
		}
	}
	for _, call := range w.calls() {
		if !strings.HasPrefix(call, "GET ") && !strings.HasPrefix(call, "POST /v3/sandboxes") {
			w.Errorf("and yet: %s", call)
		}
	}
	w.has("secret.env", "-")
	w.has("made", "-")
}

// Somebody else's sandbox is not used, nor given another policy, nor stopped.
func TestForeign(t *testing.T) {
	t.Parallel()
	a, b := shared(t, true)
	_, err := b.run("cat made")
	b.isForeign(err, "alice@desk made it at 20", "and it is running", "--adopt")
	b.back.Adopt = true
	_, err = b.run("cat made")
	b.isForeign(err, "let its owner stop it")
	found, err := a.client.Get(t.Context(), "box", false)
	must(t, err)
	if found.Session.Status != api.Running || a.back.Policy().Compare(found.Session.NetworkPolicy) != nil {
		t.Errorf("%+v", found.Session)
	}
	k := &Kept{Client: b.client, Name: "box", Owner: bob, Known: true}
	_, err = k.Snapshot(t.Context(), 0)
	for what, err := range map[string]error{
		"stop": k.Stop(t.Context()), "delete": k.Delete(t.Context()), "restore": k.Restore(t.Context(), "snap_x"), "snapshot": err,
		"push": k.Push(t.Context(), b.dir, "x"), "pull": k.Pull(t.Context(), "made", b.dir+"/made"),
	} {
		if foreign := (*ForeignError)(nil); !errors.As(err, &foreign) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.has("made", "-")
	must(t, (&Kept{Client: a.client, Name: "box", Owner: alice}).Stop(t.Context()))
}

// Whoever says so takes over a sandbox that has stopped, and it is theirs then.
func TestAdopt(t *testing.T) {
	t.Parallel()
	a, b := shared(t, false)
	_, err := b.run("true")
	b.isForeign(err, "alice@desk")
	b.back.Adopt = true
	b.ok(0, "cat /vercel/more")
	if out := b.read(b.out); out != "more\n" {
		t.Errorf("%q", out)
	}
	a.files("secret.env", "alice's again")
	_, err = a.run("true")
	if foreign := (*ForeignError)(nil); !errors.As(err, &foreign) || foreign.Mark.Who != "bob@laptop" {
		t.Error(err)
	}
	b.back.Adopt = false
	b.ok(0, "true")
}

// Nor is a sandbox used that launch never made, or that is of another workspace.
func TestForeignKinds(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.back.Owner = bob
	_, err := w.client.Create(t.Context(), api.CreateRequest{Name: "box"})
	must(t, err)
	w.calls()
	_, err = w.run("true")
	w.isForeign(err, "something else, or an earlier launch, made it", "and it is running")
	if foreign := (*ForeignError)(nil); !errors.As((&Kept{Client: w.client, Name: "box", Owner: bob}).Delete(t.Context()), &foreign) {
		t.Error("deleted by somebody who never knew it")
	}
	must(t, (&Kept{Client: w.client, Name: "box", Owner: bob, Known: true}).Delete(t.Context()))

	w.ok(0, "true")
	w.calls()
	other := w.spec("true")
	other.Dir = t.TempDir()
	_, err = w.back.Run(t.Context(), other)
	w.isForeign(err, "of this workspace", "bob@laptop")
	w.back.Adopt = true
	if res, err := w.back.Run(t.Context(), other); err != nil || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Two that make a sandbox of one name in the same second do not share it, also
// when the answer of the second is lost.
func TestForeignRace(t *testing.T) {
	t.Parallel()
	for _, faults := range [][]string{
		{"GET /v2/sandboxes/box status=404"},
		{"GET /v2/sandboxes/box status=404", "POST /v3/sandboxes status=502"},
		{"GET /v2/sandboxes/box status=404", "POST /v3/sandboxes reset=before", "GET /v2/sandboxes/box status=403"},
	} {
		t.Run(faults[len(faults)-1], func(t *testing.T) {
			t.Parallel()
			_, b := shared(t, true)
			b.fault(faults...)
			_, err := b.run("cat made")
			if len(faults) == 1 {
				b.isForeign(err, "alice@desk")
			} else if calls := b.calls(); err == nil || slices.Contains(calls, "stop") || count(calls, "PATCH")+count(calls, "cmd") > 0 {
				t.Errorf("%v, calls %q", err, calls)
			}
		})
	}
}

// A user's tags and the mark travel together; the mark's name is launch's.
func TestMark(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	w.back.Owner, w.back.Tags = Owner{ID: "0123456789abcdef", Who: "us er@h\x1b[1m." + strings.Repeat("x", 300)}, map[string]string{"team": "web"}
	w.ok(0, "true")
	w.back.Tags = map[string]string{"team": "api"}
	w.ok(0, "true")
	found, err := w.client.Get(t.Context(), "box", false)
	must(t, err)
	mark := MarkOf(found.Sandbox.Tags)
	if found.Sandbox.Tags["team"] != "api" || mark.Owner != "0123456789abcdef" || !strings.HasPrefix(mark.Who, "us-er@h--1m.xxx") || len(found.Sandbox.Tags[ownerTag]) > 256 {
		t.Errorf("%q", found.Sandbox.Tags)
	}
	if strings.Contains(found.Sandbox.Tags[ownerTag], w.dir) {
		t.Error("the workspace's path travels")
	}
	w.back.Tags = map[string]string{"launch": "x"}
	if _, err := w.run("true"); err == nil || !strings.Contains(err.Error(), "launch writes it") {
		t.Error(err)
	}
	if m := MarkOf(map[string]string{"launch": "a.b"}); m != (Mark{}) {
		t.Errorf("%+v", m)
	}
	if who := MarkOf(map[string]string{"launch": "a.b.\x1b]0;x\x07"}).Who; strings.ContainsAny(who, "\x1b\x07") {
		t.Errorf("%q", who)
	}
}
