package curl

import (
	"time"

	"egressd/hermetic/internal/fetch"
)

// settings are the options of one curl, up to --next.
type settings struct {
	urls  []string
	query []string // --url-query
	destinations
	message
	ranging
	identity
	cookieOptions
	redirects
	patience
	verification
}

// destinations is where bodies and heads go.
type destinations struct {
	outs                      []out
	allRemote, remoteHeader   bool
	outputDir                 string
	createDirs, remoteTime    bool
	noClobber                 bool
	discard                   bool // --remove-on-error
	head, include, compressed bool
	dumpTo                    string
	format                    string // -w
	maxSize                   int64
}

// message is the request: its method, fields and body.
type message struct {
	method    string
	get, asIs bool
	uploads   []string
	data      []byte
	posted    bool // -d was given
	json      bool
	form      []fetch.Section
	formed    bool
	headers   []string
	globOff   bool
	scheme    string // --proto-default
	protocols map[string]bool
}

// ranging is which part of a body is asked for, or whether it has changed.
type ranging struct {
	ranges   string
	resume   int64 // -1: from the size of the file
	resumed  bool
	since    string
	etagFrom string
	etagTo   string
}

// identity is what curl says of itself and its user.
type identity struct {
	agent     string
	noAgent   bool // -A ""
	referer   string
	autoRefer bool
	login     string
	loggedIn  bool
	noLogin   bool
	bearer    string
}

// cookieOptions are the options for cookies.
type cookieOptions struct {
	cookieText string
	cookieFrom []string
	cookieTo   string
	cookies    bool // the engine is on
	junk       bool
}

// redirects is what happens on a redirect.
type redirects struct {
	follow                    bool
	post301, post302, post303 bool
	maxRedirects              int
	redirProtocols            map[string]bool
}

// patience is how long is waited, how often is tried, and what a failure is.
type patience struct {
	failing, failBody      bool
	maxTime, connect       time.Duration
	retries                int
	retryDelay, retryMax   time.Duration
	retryAll, retryRefused bool
}

// verification is how the origin proves itself.
type verification struct {
	insecure       bool
	caFile         string
	tlsMin, tlsMax uint16
}

// out is one -o or -O.
type out struct {
	name   string
	remote bool
}

// global is what --next does not start anew.
type global struct {
	silent, showError, verbose bool
	failEarly                  bool
	stderr                     string
}

// uploadsOf are the files of -T for the URL at i, {} and [] read; one "" is none.
func (s *settings) uploadsOf(i int) []string {
	if i >= len(s.uploads) {
		return []string{""}
	}
	all, f := Expand(s.uploads[i])
	if s.globOff || f != nil {
		return s.uploads[i : i+1]
	}
	var names []string
	for _, g := range all {
		names = append(names, g.url)
	}
	return names
}

func newSettings() *settings {
	web := func() map[string]bool { return map[string]bool{"http": true, "https": true} }
	return &settings{
		message:   message{scheme: "http", protocols: web()},
		redirects: redirects{maxRedirects: 50, redirProtocols: web()},
	}
}
