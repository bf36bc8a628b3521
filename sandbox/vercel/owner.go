package vercel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"time"

	"egressd/sandbox/vercel/api"
)

// Owner is who runs. The zero Owner has no sandboxes of its own: nothing is
// marked, and only what nobody has marked is used again.
type Owner struct {
	ID  string // stable and random; hexadecimal
	Who string // for people: "user@machine"
}

// A sandbox is marked with one tag: OWNER.WORKSPACE.WHO.
const (
	ownerTag = "launch"
	whoMax   = 100 // bytes
)

// mark is the tag of a sandbox of o for a workspace; "" for the zero Owner. The
// workspace's path does not travel: a sum of it and the owner does.
func (o Owner) mark(workspace string) string {
	if o.ID == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(o.ID + "\x00" + workspace))
	return o.ID + "." + hex.EncodeToString(sum[:8]) + "." + o.who()
}

// who is Who in letters that any service takes.
func (o Owner) who() string {
	who := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@.-_", r) {
			return r
		}
		return '-'
	}, o.Who)
	return who[:min(len(who), whoMax)]
}

// Mark is what a sandbox's tag says about its owner. The zero Mark is a sandbox
// that launch did not make.
type Mark struct{ Owner, Workspace, Who string }

// MarkOf reads the tags of a sandbox.
func MarkOf(tags map[string]string) Mark {
	parts := strings.SplitN(tags[ownerTag], ".", 3)
	if len(parts) != 3 || parts[0] == "" {
		return Mark{}
	}
	return Mark{Owner: parts[0], Workspace: parts[1], Who: Owner{Who: parts[2]}.who()}
}

// ForeignError reports a sandbox that is not this user's, or not this
// workspace's.
type ForeignError struct {
	Name    string
	Mark    Mark
	Made    time.Time
	Running bool
	Mine    bool // it is this user's, and of another workspace
	Adopt   bool // the user asked for it even so
}

// Error implements error.
func (e *ForeignError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the project has a sandbox %s that is not ", e.Name)
	since := ""
	if !e.Made.IsZero() {
		since = " at " + e.Made.Local().Format("2006-01-02 15:04")
	}
	switch {
	case e.Mine:
		b.WriteString("of this workspace: it was made" + since + " for another one, by " + e.Mark.Who)
	case e.Mark.Owner != "":
		b.WriteString("yours: " + e.Mark.Who + " made it" + since)
	default:
		b.WriteString("marked as yours: something else, or an earlier launch, made it" + since)
	}
	if e.Running {
		b.WriteString(", and it is running")
	}
	switch {
	case !e.Adopt:
		b.WriteString("\n  take another --name; or, to have its disk, with all that is on it, from now on: launch --adopt --name " + e.Name + " ... -- PROGRAM")
	default:
		b.WriteString("\n  --adopt takes over one that has stopped: wait for its end, or let its owner stop it")
	}
	return b.String()
}

// foreign is a *ForeignError if found is not o's for that workspace; workspace ""
// is any.
//
// Threat: names are the project's, and two people, or two jobs, use the same one:
// the second gets the first one's files into the workspace, replaces the policy
// under a program that runs, and stops it -> a sandbox is used, stopped and
// deleted only with its owner's tag; --adopt takes over one that has stopped.
// Left over: whoever may write to the project can write tags, too; this holds
// mistakes, not colleagues of ill will.
func (o Owner) foreign(found *api.Instance, workspace string) *ForeignError {
	mark := MarkOf(found.Sandbox.Tags)
	want := MarkOf(map[string]string{ownerTag: o.mark(workspace)})
	if mark.Owner == want.Owner && (workspace == "" || mark.Workspace == want.Workspace) {
		return nil
	}
	return &ForeignError{
		Name: found.Sandbox.Name, Mark: mark, Made: found.Sandbox.CreatedAt.Time(),
		Running: !found.Session.Status.Final(), Mine: mark.Owner != "" && mark.Owner == want.Owner,
	}
}

// entitled reports whether this run may use the sandbox that was found. adopting
// means that it becomes this user's.
func (r *run) entitled(found *api.Instance) (adopting bool, err error) {
	foreign := r.Owner.foreign(found, r.place.root)
	if foreign == nil {
		return false, nil
	}
	foreign.Adopt = r.Adopt
	if !r.Adopt || foreign.Running && !foreign.Mine {
		return false, foreign
	}
	return true, nil
}

// tags are those of this run's sandbox, with its owner's.
func (b *Backend) tags(workspace string) map[string]string {
	mark := b.Owner.mark(workspace)
	if mark == "" {
		return b.Tags
	}
	all := maps.Clone(b.Tags)
	if all == nil {
		all = map[string]string{}
	}
	all[ownerTag] = mark
	return all
}
