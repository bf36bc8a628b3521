package curl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/fetch"
)

const (
	curlAgent   = "curl/7.88.1"
	curlVersion = `curl 7.88.1 (egressd hermetic) libcurl/7.88.1
Release-Date: 2023-02-20
Protocols: http https
Features: IDN IPv6 Largefile libz PSL SSL
`
	curlHelp = `Usage: curl [options...] <url>
 -d, --data <data>          HTTP POST data
 -f, --fail                 Fail fast with no output on HTTP errors
 -h, --help <category>      Get help for commands
 -i, --include              Include protocol response headers in the output
 -o, --output <file>        Write to file instead of stdout
 -O, --remote-name          Write output to a file named as the remote file
 -s, --silent               Silent mode
 -T, --upload-file <file>   Transfer local FILE to destination
 -u, --user <user:password> Server user and password
 -A, --user-agent <name>    Send User-Agent <name> to server
 -v, --verbose              Make the operation more talkative
 -V, --version              Show version number and quit
`
)

// runner is one curl: what its transfers share.
type runner struct {
	c       *command.Call
	g       global
	jar     *fetch.Jar
	stdout  *fetch.Sink
	stderr  io.Writer
	closers []io.Closer
	count   int // transfers begun
}

func curl(ctx context.Context, c *command.Call) int {
	p := &parser{c: c, known: curlOptions(), s: newSettings()}
	if status, err := p.line(c.Args[1:]); err != nil {
		return finishUsage(c, status, err)
	}
	all := append(p.done, p.s)
	for _, s := range all {
		if status := p.check(s); status != 0 {
			return status
		}
	}
	if c.Proxy == nil {
		fmt.Fprintln(c.Stderr, "curl: (7) Network access denied: this run has no network")
		return fetch.ExitConnect
	}
	r := &runner{c: c, g: p.g, jar: &fetch.Jar{Now: c.Now}, stdout: &fetch.Sink{W: c.Stdout}, stderr: c.Stderr}
	if status := r.redirectStderr(); status != 0 {
		return status
	}
	status := r.groups(ctx, all)
	for _, cl := range r.closers {
		_ = cl.Close() // a log for people; the transfers' files report theirs
	}
	if errors.Is(r.stdout.Err, fetch.ErrPipe) {
		return fetch.StatusPipe
	}
	return status
}

func finishUsage(c *command.Call, status int, err error) int {
	text := ""
	switch {
	case errors.Is(err, errVersion):
		text = curlVersion
	case errors.Is(err, errHelp):
		text = curlHelp
	default:
		return status
	}
	if _, err := io.WriteString(c.Stdout, text); err != nil {
		return fetch.ExitWrite
	}
	return 0
}

// check finds what the options say against each other.
func (p *parser) check(s *settings) int {
	switch {
	case len(s.urls) == 0 && p.done == nil && len(p.c.Args) == 1:
		fmt.Fprint(p.c.Stderr, tryHelp)
		return fetch.ExitUsage
	case len(s.urls) == 0:
		fmt.Fprint(p.c.Stderr, "curl: no URL specified!\n"+tryHelp)
		return fetch.ExitUsage
	case s.resumed && s.remoteHeader:
		fmt.Fprint(p.c.Stderr, "curl: --continue-at and --remote-header-name cannot be combined\n"+tryHelp)
		return fetch.ExitUsage
	case s.failing && s.failBody:
		if !p.g.silent {
			fmt.Fprint(p.c.Stderr, "curl: You must select either --fail or --fail-with-body, not both.\n")
		}
		fmt.Fprint(p.c.Stderr, "curl: option --fail-with-body: is badly used here\n"+tryHelp)
		return fetch.ExitUsage
	}
	var kinds []string
	for _, k := range []struct {
		on   bool
		name string
	}{
		{s.posted && !s.get, "POST (-d, --data)"},
		{s.head, "HEAD (-I, --head)"},
		{s.formed, "multipart formpost (-F, --form)"},
		{len(s.uploads) > 0, "PUT (-T, --upload-file)"},
	} {
		if k.on {
			kinds = append(kinds, k.name)
		}
	}
	if len(kinds) > 1 {
		p.warn("You can only select one HTTP request method! You asked for both %s and %s.", kinds[0], kinds[1])
		return fetch.ExitUsage
	}
	return 0
}

func (r *runner) redirectStderr() int {
	switch r.g.stderr {
	case "":
		return 0
	case "-":
		r.stderr = r.c.Stdout
		return 0
	}
	f, err := fetch.Create(r.c, r.c.Path(r.g.stderr), syscall.O_TRUNC)
	if err != nil {
		fmt.Fprint(r.stderr, warning("Failed to open "+r.g.stderr+"!"))
		return 0
	}
	r.stderr, r.closers = f, append(r.closers, f)
	return 0
}

// groups makes all transfers. The status is the last failure's, as curl's is.
func (r *runner) groups(ctx context.Context, all []*settings) (status int) {
	for _, s := range all {
		if f := r.prepare(s); f != nil {
			r.tell(f)
			status = f.Code
			continue
		}
		stop := false
		status, stop = r.group(ctx, s, status)
		r.saveCookies(s)
		if stop {
			return status
		}
	}
	return status
}

func (r *runner) group(ctx context.Context, s *settings, status int) (_ int, stop bool) {
	t, f := r.trust(s)
	if f != nil {
		r.tell(f)
		return f.Code, r.g.failEarly
	}
	for i, pattern := range s.urls {
		urls := []globbed{{url: pattern}}
		if !s.globOff {
			if urls, f = Expand(pattern); f != nil {
				r.tell(f)
				return f.Code, r.g.failEarly
			}
		}
		for _, u := range urls {
			for _, up := range s.uploadsOf(i) {
				x := &transfer{runner: r, s: s, url: u, at: i, upload: up, trust: t}
				f := x.run(ctx)
				if status = 0; f != nil { // the last transfer's counts, as with curl
					status = f.Code
				}
				if f != nil && (r.g.failEarly || ctx.Err() != nil) || r.stdout.Err != nil {
					return status, true
				}
			}
		}
	}
	return status, false
}

func (r *runner) trust(s *settings) (*fetch.Trust, *fetch.Failure) {
	var own []byte
	if s.caFile != "" {
		p := &parser{c: r.c}
		b, err := fetch.Slurp(p.c, s.caFile)
		if err != nil || len(bytes.TrimSpace(b)) == 0 {
			return nil, fetch.Fail(fetch.ExitCAFile, "error setting certificate verify locations:  CAfile: %s CApath: none", s.caFile)
		}
		own = b
	}
	t, ok := fetch.NewTrust(r.c.Roots, own)
	if !ok {
		return nil, fetch.Fail(fetch.ExitCAFile, "error setting certificate verify locations:  CAfile: %s CApath: none", s.caFile)
	}
	t.Minimum, t.Maximum, t.Insecure = s.tlsMin, s.tlsMax, s.insecure
	return t, nil
}

// prepare loads the cookies of one group.
func (r *runner) prepare(s *settings) *fetch.Failure {
	for _, name := range s.cookieFrom {
		if name == "" {
			continue
		}
		if name == "-" {
			r.jar.Load(r.c.Stdin, s.junk)
			continue
		}
		if f, err := r.c.FS.Open(r.c.Path(name)); err == nil { // none yet: an empty jar
			r.jar.Load(f, s.junk)
			_ = f.Close()
		}
	}
	return nil
}

func (r *runner) saveCookies(s *settings) {
	switch s.cookieTo {
	case "":
	case "-":
		_ = r.jar.Save(r.stdout) // the sink remembers
	default:
		err := fetch.WriteFile(r.c, r.c.Path(s.cookieTo), r.jar.Save)
		if err != nil && !r.g.silent {
			fmt.Fprint(r.stderr, warning("failed to save cookies in "+s.cookieTo))
		}
	}
}

// tell writes a failure unless -s without -S.
func (r *runner) tell(f *fetch.Failure) {
	if !r.g.silent || r.g.showError {
		fmt.Fprintf(r.stderr, "curl: (%d) %s\n", f.Code, strings.TrimRight(f.Text, "\n"))
	}
}

// note is -v.
func (r *runner) note(kind byte, line string) {
	if r.g.verbose {
		fmt.Fprintf(r.stderr, "%c %s\n", kind, line)
	}
}
