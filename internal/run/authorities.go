package run

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"egressd/gate"
	"egressd/internal/cli"
	"egressd/internal/run/place"
	"egressd/internal/run/script"
	"egressd/policy/files"
	"egressd/sandbox"
)

// Bounds of what is read of authorities.
const (
	maxAuthorityBytes = 4 << 20 // of one file
	maxAuthorityFiles = 1024    // of one directory
)

// authorityVariables are those by which programs find the certificate authorities of a
// company: files, but for SSL_CERT_DIR.
var authorityVariables = []string{
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
	"AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "DENO_CERT",
}

// carryAuthorities passes the caller's variables about authorities on, where the program
// can read what they name, and names the others. g is nil where every file can be read.
// What --env names is the person's to say.
func (s *session) carryAuthorities(spec *sandbox.Spec, g *files.Gate) {
	for _, name := range authorityVariables {
		value := s.Getenv(name)
		if value == "" || sandbox.EnvValue(spec.Env, name) != "" {
			continue
		}
		paths := []string{value}
		if name == "SSL_CERT_DIR" {
			paths = filepath.SplitList(value)
		}
		why := ""
		for i, path := range paths {
			abs, err := filepath.Abs(path)
			if err == nil {
				_, err = os.Stat(abs)
			}
			if paths[i] = abs; err != nil {
				why = cli.Safe(path) + " cannot be read here"
			} else if no := unreadableInside(g, abs); no != "" {
				why = cli.Safe(path) + " " + no
			}
		}
		if why == "" {
			spec.Env = sandbox.SetEnv(spec.Env, name, strings.Join(paths, string(filepath.ListSeparator)))
		} else if !s.opts.Report.Quiet {
			s.Say("launch: %s is not passed in: %s\n", name, why)
		}
	}
}

// unreadableInside says why the program cannot read path; "": it can.
func unreadableInside(g *files.Gate, path string) string {
	if g == nil {
		return ""
	}
	switch d := g.Decide(place.Resolve(path)); {
	case d.Access == files.Hidden:
		return "is hidden from the program; to show it, add: --read " + cli.Quote(path)
	case d.Reason == files.Temporary:
		return "is in a directory that is private to the run; move it elsewhere"
	}
	return ""
}

// authorities reads, in PEM, the authorities that the caller's variables name besides
// the system's, if the run has a use for them: it verifies somebody, or is asked whom to
// trust. What cannot be read is left out: its variable is named elsewhere.
//
// Threat: the program adds an authority of its own, and is then the origin that the gate
// verifies -> the variables are the caller's, outside, and they are read before the
// program starts. Left over: a file that an earlier run could write; the person named it.
func (s *session) authorities() []byte {
	if u := s.policy.Upstream(); len(s.policy.Intercepted()) == 0 && (u == nil || !u.TLS) && s.opts.Tier != script.Tier {
		return nil
	}
	have := make(map[string]bool)
	certificates(gate.SystemRoots(), have)
	var out bytes.Buffer
	read := make(map[string]bool)
	for _, name := range authorityVariables {
		path := s.Getenv(name)
		if path == "" {
			continue
		}
		names := []string{path}
		if name == "SSL_CERT_DIR" {
			names = below(path)
		}
		for _, name := range names {
			if read[name] {
				continue
			}
			read[name] = true
			for _, block := range certificates(readSome(name), have) {
				_ = pem.Encode(&out, block) // a bytes.Buffer takes everything
			}
		}
	}
	return out.Bytes()
}

// certificates lists the certificates in data that are not in have, and adds them.
func certificates(data []byte, have map[string]bool) (out []*pem.Block) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out
		}
		if block.Type != "CERTIFICATE" || have[string(block.Bytes)] {
			continue
		}
		have[string(block.Bytes)] = true
		out = append(out, &pem.Block{Type: block.Type, Bytes: block.Bytes})
	}
}

// below lists the files in the directories of SSL_CERT_DIR.
func below(dirs string) (names []string) {
	for _, dir := range filepath.SplitList(dirs) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxAuthorityFiles)] {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return slices.Compact(names)
}

// readSome reads a regular file, as far as it is bounded; nil: it cannot be read.
func readSome(path string) []byte {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxAuthorityBytes {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAuthorityBytes))
	if err != nil {
		return nil
	}
	return data
}
