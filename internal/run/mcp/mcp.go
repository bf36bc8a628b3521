// Package mcp lets an agent ask about its gate with the Model Context Protocol, over
// its standard streams.
//
//	s := mcp.Server{Guide: text, Ask: ask}
//	err := s.Serve(ctx, os.Stdin, os.Stdout)
//
// Every tool only reads, but for request_approval, which has the gate ask the person.
// None of them can allow anything: the gate decides, as for any program.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"egressd/internal/cli/explain"
	"egressd/internal/run/why"
	"egressd/policy"
)

// maxText bounds what a tool is told and what it says, in bytes.
const maxText = 16 << 10

// Server answers one agent. Set the fields before Serve.
type Server struct {
	Version string
	Guide   string // what an agent should know about the gate

	// Ask asks the gate about one destination. An error: there is no gate here.
	Ask func(ctx context.Context, host policy.Host, port uint16) (why.Answer, error)

	// Denials lists what the last run was refused. Nil: it is not recorded.
	Denials func() (string, error)
}

// destination describes the input of tools about one.
const destination = "HOST, HOST:PORT or URL; without a port it is 443"

// tools are what the server offers. An error of one is for the agent to read.
func (s *Server) tools() []tool {
	return []tool{
		{
			name: "explain", reads: true,
			says:   "What the network gate around this session is, and what a refusal of it means.",
			inputs: []input{{name: "message", says: "a refusal that a program has printed; may be left out"}},
			do:     func(_ context.Context, in inputs) (string, error) { return s.explain(in["message"]), nil },
		},
		{
			name: "why", reads: true,
			says:   "Whether a destination is allowed and, if not, why, and which rule would allow it. Use it when a connection fails.",
			inputs: []input{{name: "destination", says: destination, required: true}},
			do:     s.why,
		},
		{
			name: "list_denials", reads: true,
			says: "What the last recorded run was refused.",
			do:   func(context.Context, inputs) (string, error) { return s.denials() },
		},
		{
			name: "request_approval",
			says: "Ask the user to allow a destination that the task needs. The answer is the user's; when nobody can be asked now, it says what to tell the user.",
			inputs: []input{
				{name: "destination", says: destination, required: true},
				{name: "purpose", says: "what it is needed for, in a few words for the user", required: true},
			},
			do: s.request,
		},
	}
}

// explain is the guide, and what the reason in message means if there is one.
func (s *Server) explain(message string) string {
	message = message[:min(len(message), maxText)]
	for r := policy.Reason(0); r.String() != "unknown_reason"; r++ {
		if strings.Contains(message, r.String()) && r != policy.ReasonAllowed {
			return fmt.Sprintf("%s: %s\n\n%s", r, explain.Meaning(r), s.Guide)
		}
	}
	return s.Guide
}

// about asks the gate about a destination as an agent spells it.
func (s *Server) about(ctx context.Context, text string) (why.Answer, error) {
	if len(text) > maxText {
		return why.Answer{}, errors.New("the destination is too long")
	}
	t, err := explain.Parse(text, "")
	if err != nil {
		return why.Answer{}, err
	}
	return s.Ask(ctx, t.Host, t.Port)
}

func (s *Server) why(ctx context.Context, in inputs) (string, error) {
	a, err := s.about(ctx, in["destination"])
	return a.Text, err
}

// request has the gate ask the person, if it can ask one. The purpose never reaches
// the terminal of the person: the agent would choose the words of a question there.
func (s *Server) request(ctx context.Context, in inputs) (string, error) {
	a, err := s.about(ctx, in["destination"])
	switch {
	case err != nil:
		return "", err
	case a.Allowed:
		return "Allowed: go on.\n" + a.Text, nil
	}
	return fmt.Sprintf("Not allowed. Stop here, and tell the user what it is needed for (%s) and which rule would allow it:\n%s", in["purpose"], a.Text), nil
}

func (s *Server) denials() (string, error) {
	if s.Denials == nil {
		return "", errors.New("the denials are not recorded where this server could read them: start it as launch mcp --events FILE, with the FILE of launch --events FILE")
	}
	return s.Denials()
}
