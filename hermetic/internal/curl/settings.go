package curl

import (
	"time"

	"egressd/hermetic/internal/fetch"
)

// settings are the options of one curl, up to --next.
type settings struct {
	urls    []string
	outs    []out
	uploads []string
	query   []string // --url-query

	allRemote, remoteHeader                    bool
	outputDir                                  string
	createDirs, remoteTime, noClobber, discard bool // discard: --remove-on-error
	head, get, include, compressed             bool
	follow, failing, failBody                  bool
	post301, post302, post303                  bool
	globOff, asIs, noLogin                     bool

	method     string
	data       []byte
	posted     bool // -d was given
	json       bool
	form       []fetch.Section
	formed     bool
	headers    []string
	agent      string
	noAgent    bool // -A ""
	referer    string
	autoRefer  bool
	login      string
	loggedIn   bool
	bearer     string
	ranges     string
	resume     int64 // -1: from the size of the file
	resumed    bool
	since      string
	etagFrom   string
	etagTo     string
	dumpTo     string
	format     string // -w
	cookieText string
	cookieFrom []string
	cookieTo   string
	cookies    bool // the engine is on
	junk       bool

	maxRedirects                     int
	maxTime, connect                 time.Duration
	retries                          int
	retryDelay, retryMax             time.Duration
	retryAll, retryRefused, insecure bool
	maxSize                          int64
	caFile                           string
	tlsMin, tlsMax                   uint16
	protocols, redirProtocols        map[string]bool
	scheme                           string // --proto-default
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
	return &settings{
		maxRedirects: 50, scheme: "http",
		protocols: map[string]bool{"http": true, "https": true}, redirProtocols: map[string]bool{"http": true, "https": true},
	}
}
