package proxy

import (
	"time"

	"egressd/policy"
	"egressd/proxy/internal/denial"
	"egressd/proxy/internal/peek"
)

// portSSH is the port whose clients are told no in the words of SSH.
const portSSH = 22

// sshWord begins what an SSH client sends first (RFC 4253 section 4.2), before it
// has heard from the server.
const sshWord = "SSH-"

// speaksSSH waits for the first bytes of a denied client, which those of SSH send
// at once, and reports whether they are those of SSH. Its place may go to another
// client meanwhile.
func (f *flow) speaksSSH() bool {
	f.c.idle()
	_ = f.in.SetDeadline(time.Now().Add(min(f.s.bounds().helloTimeout, refusedPatience)))
	return peek.Begins(f.in, sshWord)
}

// ssh tells a client on port 22 why: after a reset it would only say that the
// connection was closed.
type ssh struct{}

// accept implements voice: there is nothing to say.
func (ssh) accept(*flow) error { return nil }

// deny implements voice.
func (ssh) deny(f *flow, d policy.Decision, detail string) {
	den := denial.Response{Request: f.req, Decision: d, Detail: detail, Policy: f.s.PolicyName}
	_, _ = f.in.Conn.Write(den.SSH()) // the connection ends either way
}
