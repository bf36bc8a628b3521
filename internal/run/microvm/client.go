package microvm

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/run/records"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/network"
)

// Vouch says that the credentials which a workspace holds may be used: account is
// "TEAM/PROJECT". Nil asks nobody.
type Vouch func(account string) error

// Client finds the credentials and reports a client with them. The error is a
// *sandbox.CapabilityError if there are none.
//
// Threat: the token ends on a command line, in a record or in the sandbox -> it
// comes from the environment or a file, goes into one header of requests to the
// service, and into nothing else: the environment of the program is built
// without it. Left over: a person who names it with --env.
//
// Threat: a repository, or a program that ran in the workspace, puts credentials of
// its own there, and the workspace and the secrets of the next run go to somebody
// else's account -> those of the environment come first; which account the
// workspace's token names is said the first time, and another one later is an
// error (vouch). Left over: the first time, for whoever does not read what is said.
func (o *Options) Client(p *cli.Program, log *slog.Logger, vouch Vouch) (*api.Client, error) {
	from, err := o.sources(p)
	if err != nil {
		return nil, err
	}
	who, err := from.Resolve(time.Now())
	if err != nil {
		return nil, &sandbox.CapabilityError{
			Isolation: network.Isolation, What: err.Error(),
			Fix: "set it, or use --vercel-token-file, --vercel-team and --vercel-project; or run vercel link, and vercel env pull or vercel login",
		}
	}
	if who.From == envFile && vouch != nil {
		if err := vouch(who.TeamID + "/" + who.ProjectID); err != nil {
			return nil, err
		}
	}
	return &api.Client{
		BaseURL: p.Getenv("VERCEL_SANDBOX_API_URL"), Token: who.Token, TeamID: who.TeamID, ProjectID: who.ProjectID, Expires: who.Expires,
		From: who.From, UserAgent: "egressd/" + cli.Version(), Log: log,
	}, nil
}

// Vouched vouches for the account that the credentials of the workspace name: the
// one that they have always named. note, which may be nil, gets what is said the
// first time.
func (o *Options) Vouched(open func() (*records.Store, error), note func(string)) Vouch {
	return func(account string) error {
		here, err := filepath.Abs(o.Workspace)
		if err != nil {
			return err
		}
		store, err := open()
		if err != nil {
			return err
		}
		defer store.Close()
		before, err := store.Account(here, account)
		switch {
		case err != nil:
			return err
		case before == "" && note != nil:
			note("the token of " + envFile + " is used: everything goes to project " + cli.Safe(account) + " (TEAM/PROJECT)")
		case before != "" && before != account:
			return fmt.Errorf("the token of %s names %s, and named %s before: somebody may have replaced it\n  if it was you: set VERCEL_OIDC_TOKEN to it, or take another directory", envFile, cli.Safe(account), cli.Safe(before))
		}
		return nil
	}
}

// Redactor takes the values that a run sends out of what the service says. env is
// the environment of the program.
//
// Threat: the service repeats a request's words in its error, and a secret ends
// on the terminal, in events and in records -> the headers that the policy binds
// to hosts and the values of variables are taken out. Left over: values that are
// too short to be secrets, and those that come back in another spelling.
func Redactor(n *network.Network, env []string) func(string) string {
	const least = 6
	var pairs []string
	add := func(v, name string) {
		if len(v) >= least {
			pairs = append(pairs, v, name)
		}
	}
	for _, headers := range n.Headers {
		for name, v := range headers {
			add(v, "["+name+"]")
			if _, bare, ok := strings.Cut(v, " "); ok {
				add(bare, "["+name+"]")
			}
		}
	}
	for _, kv := range env {
		if name, v, _ := strings.Cut(kv, "="); !sandbox.PassesRemotely(name) {
			add(v, "["+name+"]")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}
