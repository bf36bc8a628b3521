package wget

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
)

// wgetSettings are the options of one wget.
type wgetSettings struct {
	requestOptions
	fileOptions
	logOptions
	cookieOptions
	identityOptions
	patience
}

// requestOptions are what is asked for, and how.
type requestOptions struct {
	input, agent, method, body, bodyFile, referer string
	post, noCache, httpsOnly                      bool
	headers                                       []string
}

// fileOptions are where bodies go.
type fileOptions struct {
	output, prefix                        string
	newer, keepOld, resume, disposition   bool
	onError, trustNames, spider, showHead bool
}

// logOptions are what wget says, and where.
type logOptions struct {
	logFile                 string
	appendLog, quiet, brief bool
}

// cookieOptions are the options for cookies.
type cookieOptions struct {
	loadCookies, saveCookies  string
	sessionCookies, noCookies bool
}

// identityOptions are how the user and the origin prove themselves.
type identityOptions struct {
	user, password, caFile string
	authNow, insecure      bool
}

// patience is how long is waited, and how often is tried.
type patience struct {
	tries, redirects         int
	timeout, wait, retryWait time.Duration
}

// wgetKnown are wget's options: the letter or a space, and the name, with "="
// where it takes a value.
func wgetKnown() []string {
	return []string{
		"O output-document=", "P directory-prefix=", "q quiet", "  no-verbose", "v verbose", "S server-response", "  spider",
		"N timestamping", "c continue", "  header=", "  post-data=", "  post-file=", "  method=", "  body-data=", "  body-file=",
		"T timeout=", "t tries=", "  connect-timeout=", "  read-timeout=", "  dns-timeout=", "U user-agent=", "  no-check-certificate",
		"i input-file=", "  no-clobber", "  content-disposition", "  max-redirect=", "w wait=", "  waitretry=", "  referer=",
		"  load-cookies=", "  save-cookies=", "  keep-session-cookies", "  no-cookies", "  user=", "  password=", "  http-user=",
		"  http-password=", "  auth-no-challenge", "  ca-certificate=", "o output-file=", "a append-output=", "  content-on-error",
		"  show-progress", "  progress=", "  no-proxy", "4 inet4-only", "6 inet6-only", "  no-cache", "  no-http-keep-alive",
		"  no-dns-cache", "  no-netrc", "  no-config", "  no-hsts", "  retry-connrefused", "  https-only", "  no-directories", "  no-host-directories",
		"  trust-server-names", "  no-use-server-timestamps", "b background", "r recursive", "k convert-links", "p page-requisites",
		"m mirror", "l level=", "A accept=", "R reject=", "x force-directories", "E adjust-extension", "e execute=", "  limit-rate=",
		"  no-parent", "H span-hosts", "  warc-file=", "  bind-address=", "  proxy-user=", "  proxy-password=", "V version", "h help",
		"d debug", "Q quota=", "  ignore-length", "  start-pos=", "  compression=",
	}
}

func wgetOptions() []command.Option {
	var all []command.Option
	for _, o := range wgetKnown() {
		name, value := strings.CutSuffix(o[2:], "=")
		opt := command.Option{Long: name}
		if o[0] != ' ' {
			opt.Short = o[0]
		}
		if value {
			opt.Takes = command.Value
		}
		all = append(all, opt)
	}
	return all
}

// wgetWords spells what getopt does not know: -nv, -nc, -nd, -nH and the like
// are one option each.
func wgetWords(args []string) []string {
	long := map[string]string{"-nv": "--no-verbose", "-nc": "--no-clobber", "-nd": "--no-directories", "-np": "--no-parent", "-nH": "--no-host-directories"}
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if l := long[a]; l != "" {
			a = l
		}
		out = append(out, a)
	}
	return out
}

func (s *wgetSettings) set(name, v string) error {
	if at := s.flag(name); at != nil {
		*at = true
		return nil
	}
	if at := s.text(name); at != nil {
		*at = v
		return nil
	}
	switch name {
	case "header":
		s.headers = append(s.headers, v)
	case "post-data", "body-data":
		s.body, s.bodyFile, s.post = v, "", true
		s.defaultPost(name)
	case "post-file", "body-file":
		s.bodyFile, s.post = v, true
		s.defaultPost(name)
	case "append-output":
		s.logFile, s.appendLog = v, true
	case "tries":
		return s.setTries(v)
	case "max-redirect":
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("--%s: Invalid number ‘%s’", name, v)
		}
		s.redirects = n
	case "timeout", "connect-timeout", "read-timeout", "dns-timeout":
		return period(name, v, &s.timeout)
	case "wait":
		return period(name, v, &s.wait)
	case "waitretry":
		return period(name, v, &s.retryWait)
	case "compression":
		if v != "none" {
			return fmt.Errorf("--compression=%s is not supported here", v)
		}
	case "verbose", "show-progress", "progress", "no-proxy", "inet4-only", "inet6-only", "no-http-keep-alive", "no-dns-cache", "no-netrc", "no-config",
		"no-hsts", "no-directories", "no-host-directories", "trust-server-names", "no-parent", "retry-connrefused", "no-use-server-timestamps":
		return s.quietOrNot(name)
	case "execute":
		if key, _, _ := strings.Cut(v, "="); strings.TrimSpace(key) != "robots" { // it is for -r
			return fmt.Errorf("--execute=%s is not supported here", v)
		}
	default:
		return fmt.Errorf("option '--%s' is not supported here", name)
	}
	return nil
}

// quietOrNot are those that change nothing here, but for two.
func (s *wgetSettings) quietOrNot(name string) error {
	switch name {
	case "trust-server-names":
		s.trustNames = true
	case "verbose":
		s.quiet, s.brief = false, false
	}
	return nil
}

func (s *wgetSettings) defaultPost(name string) {
	if strings.HasPrefix(name, "post") && s.method == "" {
		s.method = "POST"
	}
}

func (s *wgetSettings) setTries(v string) error {
	n, err := strconv.Atoi(v)
	if v == "inf" {
		n, err = 0, nil
	}
	if err != nil || n < 0 {
		return fmt.Errorf("--tries: Invalid number ‘%s’", v)
	}
	if s.tries = n; n == 0 {
		s.tries = 1000
	}
	return nil
}

func period(name, v string, at *time.Duration) error {
	unit := time.Second
	if v != "" {
		switch v[len(v)-1] {
		case 'm':
			unit, v = time.Minute, v[:len(v)-1]
		case 'h':
			unit, v = time.Hour, v[:len(v)-1]
		case 'd':
			unit, v = 24*time.Hour, v[:len(v)-1]
		}
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f < 1e8) {
		return fmt.Errorf("--%s: Invalid time period ‘%s’", name, v)
	}
	*at = time.Duration(f * float64(unit))
	return nil
}

func (s *wgetSettings) flag(name string) *bool {
	return map[string]*bool{
		"quiet": &s.quiet, "no-verbose": &s.brief, "server-response": &s.showHead, "spider": &s.spider, "timestamping": &s.newer,
		"continue": &s.resume, "no-check-certificate": &s.insecure, "no-clobber": &s.keepOld, "content-disposition": &s.disposition,
		"keep-session-cookies": &s.sessionCookies, "content-on-error": &s.onError, "https-only": &s.httpsOnly,
		"auth-no-challenge": &s.authNow, "no-cookies": &s.noCookies, "no-cache": &s.noCache,
	}[name]
}

func (s *wgetSettings) text(name string) *string {
	return map[string]*string{
		"output-document": &s.output, "directory-prefix": &s.prefix, "method": &s.method, "user-agent": &s.agent, "input-file": &s.input,
		"referer": &s.referer, "load-cookies": &s.loadCookies, "save-cookies": &s.saveCookies, "user": &s.user, "password": &s.password,
		"http-user": &s.user, "http-password": &s.password, "ca-certificate": &s.caFile, "output-file": &s.logFile,
	}[name]
}
