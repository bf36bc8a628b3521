package wget

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/curl"
	"egressd/hermetic/internal/fetch"
)

// Exit statuses of wget, as its manual lists them.
const (
	wgetGeneric  = 1
	wgetParse    = 2
	WgetFile     = 3
	wgetNetwork  = 4
	wgetTLS      = 5
	wgetAuth     = 6
	wgetProtocol = 7
	wgetServer   = 8
)

const (
	wgetAgent = "Wget/1.21.3"
	wgetUsage = "Usage: wget [OPTION]... [URL]...\n"
	wgetHelp  = "GNU Wget 1.21.3, a non-interactive network retriever.\n" + wgetUsage + `
  -O,  --output-document=FILE  write documents to FILE ("-" is standard output)
  -P,  --directory-prefix=DIR  save files to DIR
  -q,  --quiet                 be quiet
  -nv, --no-verbose            one line for each URL
  -c,  --continue              go on with a file that is there in part
  -N,  --timestamping          download only what is newer than the file
  -nc, --no-clobber            leave files alone that are there
  -i,  --input-file=FILE       download the URLs in FILE
  -S,  --server-response       print what the server answers
       --spider                download nothing, only look
       --header=STRING         send STRING among the fields
       --post-data=STRING      POST this; --post-file, --method, --body-data
  -T,  --timeout=SECONDS       -t, --tries=NUMBER
`
)

// getter is one wget.
type getter struct {
	c       *command.Call
	s       *wgetSettings
	log     io.Writer
	stdout  *fetch.Sink
	jar     *fetch.Jar
	trust   *fetch.Trust
	out     io.Writer // of -O, open over all URLs
	outFile io.Closer
	fetched int
	total   int64
	worst   int
}

func wget(ctx context.Context, c *command.Call) int {
	d := *c
	d.Args = append([]string{c.Args[0]}, wgetWords(c.Args[1:])...)
	c = &d
	given, urls, err := c.Options(wgetOptions(), false)
	if err != nil {
		fmt.Fprintf(c.Stderr, "wget: %v\n%s\nTry `wget --help' for more options.\n", err, wgetUsage)
		return wgetParse
	}
	s := &wgetSettings{
		requestOptions: requestOptions{agent: wgetAgent},
		patience:       patience{tries: 20, redirects: 20, timeout: 900 * time.Second, retryWait: 10 * time.Second},
	}
	for _, o := range given {
		switch o.Name {
		case "version", "help":
			text := wgetHelp
			if o.Name == "version" {
				text = "GNU Wget 1.21.3 (egressd hermetic)\n"
			}
			if _, err := io.WriteString(c.Stdout, text); err != nil {
				return WgetFile
			}
			return 0
		}
		if err := s.set(o.Name, o.Value); err != nil {
			fmt.Fprintf(c.Stderr, "wget: %v\n", err)
			return wgetParse
		}
	}
	if len(urls) == 0 && s.input == "" {
		fmt.Fprintf(c.Stderr, "wget: missing URL\n%s\nTry `wget --help' for more options.\n", wgetUsage)
		return wgetGeneric
	}
	if s.post && s.method == "" {
		fmt.Fprintln(c.Stderr, "You must specify a method through --method=HTTPMethod to use with --body-data or --body-file.")
		return wgetGeneric
	}
	if c.Proxy == nil {
		fmt.Fprintln(c.Stderr, "wget: Network access denied: this run has no network")
		return wgetNetwork
	}
	g := &getter{c: c, s: s, log: c.Stderr, stdout: &fetch.Sink{W: c.Stdout}, jar: &fetch.Jar{Now: c.Now}}
	return g.run(ctx, urls)
}

func (g *getter) run(ctx context.Context, urls []string) int {
	if status := g.open(); status != 0 {
		return status
	}
	began := g.c.Now()
	more, status := g.listed()
	g.fail(status)
	all := append(urls, more...)
	for i, u := range all {
		if i > 0 && g.s.wait > 0 && !fetch.Pause(ctx, g.s.wait) || ctx.Err() != nil {
			break
		}
		g.fail(g.one(ctx, u))
		if g.stdout.Err != nil {
			break
		}
	}
	g.Close()
	if errors.Is(g.stdout.Err, fetch.ErrPipe) {
		return fetch.StatusPipe
	}
	if len(all) > 1 && g.fetched > 0 && !g.s.quiet && !g.s.spider {
		spent := g.c.Now().Sub(began).Seconds()
		g.say("FINISHED --%s--\nTotal wall clock time: %ss\nDownloaded: %d files, %s in %ss (%s)\n",
			g.stamp(), decimal(spent), g.fetched, human(g.total), decimal(spent), rate(g.total, g.c.Now().Sub(began)))
	}
	return g.worst
}

// fail keeps the status that is told: of two, the lower one, and 1 never where
// there is another (as the manual says).
func (g *getter) fail(status int) {
	switch {
	case status == 0:
	case g.worst == 0, g.worst == wgetGeneric, status < g.worst && status != wgetGeneric:
		g.worst = status
	}
}

func (g *getter) open() int {
	t, ok := fetch.NewTrust(g.c.Roots, nil)
	if g.s.caFile != "" {
		own, err := fetch.Slurp(g.c, g.s.caFile)
		if err != nil {
			g.c.Errorf("%s: %s", g.s.caFile, command.Reason(err))
			return wgetTLS
		}
		t, ok = fetch.NewTrust(g.c.Roots, append(own, '\n'))
	}
	if !ok {
		g.c.Errorf("%s: no certificate in it", g.s.caFile)
		return wgetTLS
	}
	t.Insecure = g.s.insecure
	g.trust = t
	if name := g.s.logFile; name != "" && name != "-" {
		how := syscall.O_TRUNC
		if g.s.appendLog {
			how = syscall.O_APPEND
		}
		f, err := fetch.Create(g.c, g.c.Path(name), how)
		if err != nil {
			g.c.Errorf("%s: %s", name, command.Reason(err))
			return wgetGeneric
		}
		g.log = f
	}
	if name := g.s.loadCookies; name != "" {
		f, err := g.c.FS.Open(g.c.Path(name))
		if err != nil {
			g.say("Cannot open cookies file ‘%s’: %s\n", name, command.Reason(err))
		} else {
			g.jar.Load(f, false)
			_ = f.Close()
		}
	}
	return g.openOutput()
}

func (g *getter) openOutput() int {
	switch g.s.output {
	case "":
		return 0
	case "-":
		g.out = g.stdout
		return 0
	}
	how := syscall.O_TRUNC
	if g.s.resume {
		how = syscall.O_APPEND
	}
	f, err := fetch.Create(g.c, g.c.Path(g.s.output), how)
	if err != nil {
		fmt.Fprintf(g.log, "%s: %s\n", g.s.output, command.Reason(err))
		return wgetGeneric
	}
	g.out, g.outFile = f, f
	return 0
}

func (g *getter) Close() {
	if g.outFile != nil {
		if err := g.outFile.Close(); err != nil {
			g.fail(WgetFile)
		}
	}
	if name := g.s.saveCookies; name != "" {
		if !g.s.sessionCookies {
			kept := g.jar.All[:0]
			for _, c := range g.jar.All {
				if c.Expires != 0 {
					kept = append(kept, c)
				}
			}
			g.jar.All = kept
		}
		if err := fetch.WriteFile(g.c, g.c.Path(name), g.jar.Save); err != nil {
			g.say("Cannot open cookies file ‘%s’: %s\n", name, command.Reason(err))
		}
	}
	if f, ok := g.log.(io.Closer); ok && g.s.logFile != "" && g.s.logFile != "-" {
		_ = f.Close() // a log for people
	}
}

// listed reads -i.
func (g *getter) listed() (urls []string, status int) {
	if g.s.input == "" {
		return nil, 0
	}
	b, err := fetch.Slurp(g.c, g.s.input)
	if err != nil {
		g.say("%s: %s\n", g.s.input, command.Reason(err))
		g.say("No URLs found in %s.\n", g.s.input)
		return nil, wgetGeneric
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			urls = append(urls, line)
		}
		if len(urls) > curl.GlobMax {
			break
		}
	}
	if len(urls) == 0 {
		g.say("No URLs found in %s.\n", g.s.input)
	}
	return urls, 0
}

// say is what -q silences.
func (g *getter) say(format string, args ...any) {
	if !g.s.quiet {
		fmt.Fprintf(g.log, format, args...)
	}
}

// chat is what -nv silences, too.
func (g *getter) chat(format string, args ...any) {
	if !g.s.brief {
		g.say(format, args...)
	}
}

func (g *getter) stamp() string { return g.c.Now().UTC().Format("2006-01-02 15:04:05") }

// decimal is a number of seconds as wget prints it.
func decimal(f float64) string {
	if f < 10 {
		return fmt.Sprintf("%.2g", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// human is a size as wget prints it.
func human(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprint(n)
	}
	f := float64(n)
	for i := range len(units) {
		if f /= 1024; f < 1024 || i == len(units)-1 {
			if f < 10 {
				return fmt.Sprintf("%.1f%c", f, units[i])
			}
			return fmt.Sprintf("%.0f%c", f, units[i])
		}
	}
	return ""
}
