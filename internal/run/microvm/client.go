package microvm

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/api/account"
	"egressd/sandbox/vercel/network"
)

// Client finds the credentials and reports a client with them. The error is a
// *sandbox.CapabilityError if there are none.
//
// Threat: the token ends on a command line, in a record or in the sandbox -> it
// comes from the environment or a file, goes into one header of requests to the
// service, and into nothing else: the environment of the program is built
// without it. Left over: a person who names it with --env.
func (o *Options) Client(p *cli.Program, log *slog.Logger) (*api.Client, error) {
	from := account.Sources{
		TeamID: o.Team, ProjectID: o.Project,
		EnvToken: p.Getenv("VERCEL_TOKEN"), EnvTeamID: p.Getenv("VERCEL_TEAM_ID"), EnvProjectID: p.Getenv("VERCEL_PROJECT_ID"),
		EnvOIDCToken: p.Getenv("VERCEL_OIDC_TOKEN"),
	}
	if o.TokenFile != "" {
		text, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--vercel-token-file: %w", err)
		}
		from.Token = strings.TrimSpace(string(text))
	}
	who, err := from.Resolve(time.Now())
	if err != nil {
		return nil, &sandbox.CapabilityError{Isolation: network.Isolation, What: err.Error(), Fix: "set it, or use --vercel-token-file, --vercel-team and --vercel-project"}
	}
	return &api.Client{
		BaseURL: p.Getenv("VERCEL_SANDBOX_API_URL"), Token: who.Token, TeamID: who.TeamID, ProjectID: who.ProjectID, Expires: who.Expires,
		UserAgent: "egressd/" + cli.Version(), Log: log,
	}, nil
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
