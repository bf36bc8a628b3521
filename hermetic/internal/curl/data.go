package curl

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"egressd/hermetic/internal/fetch"
)

// addData appends to the body: several -d are joined by "&".
func (p *parser) addData(b []byte) error {
	if p.s.posted && len(p.s.data) > 0 && !p.s.json {
		p.s.data = append(p.s.data, '&')
	}
	p.s.data, p.s.posted = append(p.s.data, b...), true
	if int64(len(p.s.data)) > p.most() {
		return fetch.ErrMemory
	}
	return nil
}

func (p *parser) dataASCII(v string) error {
	if !strings.HasPrefix(v, "@") {
		return p.addData([]byte(v))
	}
	b, err := p.dataFile(v[1:])
	if err != nil {
		return err
	}
	return p.addData(bytes.Map(func(r rune) rune {
		if r == '\r' || r == '\n' || r == 0 {
			return -1
		}
		return r
	}, b))
}

func (p *parser) dataBinary(v string) error {
	if !strings.HasPrefix(v, "@") {
		return p.addData([]byte(v))
	}
	b, err := p.dataFile(v[1:])
	if err != nil {
		return err
	}
	return p.addData(b)
}

func (p *parser) dataFile(name string) ([]byte, error) {
	b, err := fetch.Slurp(p.c, name)
	if errors.Is(err, fetch.ErrMemory) {
		return nil, err
	}
	if err != nil {
		p.warn("Couldn't read data from file \"%s\", this makes an empty POST.", name)
		return nil, nil
	}
	return b, nil
}

func (p *parser) dataJSON(v string) error {
	p.s.json = true
	return p.dataBinary(v)
}

func (p *parser) dataEncoded(v string) error {
	b, err := p.encoded(v)
	if err != nil {
		return err
	}
	return p.addData([]byte(b))
}

// encoded reads "content", "=content", "name=content", "@file" and "name@file".
func (p *parser) encoded(v string) (string, error) {
	at := strings.IndexAny(v, "=@")
	name, content := "", v
	if at >= 0 {
		name, content = v[:at], v[at+1:]
	}
	if at >= 0 && v[at] == '@' {
		b, err := p.dataFile(content)
		if err != nil {
			return "", err
		}
		content = string(b)
	}
	if name != "" {
		name += "="
	}
	return name + formEscape(content), nil
}

func formEscape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case fetch.IsAlpha(c) || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func (p *parser) urlQuery(v string) error {
	if raw, ok := strings.CutPrefix(v, "+"); ok {
		p.s.query = append(p.s.query, raw)
		return nil
	}
	q, err := p.encoded(v)
	p.s.query = append(p.s.query, q)
	return err
}

// formPart reads one -F: NAME=CONTENT, NAME=@FILE, NAME=<FILE with ;type=,
// ;filename= and ;headers= behind.
func (p *parser) formPart(v string, literal bool) error {
	name, content, ok := strings.Cut(v, "=")
	if !ok {
		p.warn("Illegally formatted input field!")
		return errBadUse
	}
	p.s.formed = true
	if literal {
		p.s.form = append(p.s.form, part(name, "", "", nil, []byte(content)))
		return nil
	}
	switch {
	case strings.HasPrefix(content, "@"):
		return p.formFiles(name, content[1:])
	case strings.HasPrefix(content, "<"):
		file, given := formFields(content[1:], true)
		b, err := fetch.Slurp(p.c, file)
		if err != nil {
			return fetch.Fail(fetch.ExitRead, "could not open file %s", file)
		}
		p.s.form = append(p.s.form, part(name, "", given["type"], nil, b))
		return nil
	}
	value, given := formFields(content, false)
	p.s.form = append(p.s.form, part(name, given["filename"], given["type"], nil, []byte(value)))
	return nil
}

func (p *parser) formFiles(name, content string) error {
	file, given := formFields(content, true)
	shown := path.Base(file)
	if given["filename"] != "" {
		shown = given["filename"]
	}
	kind := given["type"]
	if kind == "" {
		kind = kindOf(shown)
	}
	if file == "-" {
		b, err := fetch.Slurp(p.c, "-")
		if err != nil {
			return err
		}
		p.s.form = append(p.s.form, part(name, shown, given["type"], nil, b))
		return nil
	}
	full := p.c.Path(file)
	var size int64 = -1
	if info, err := p.c.FS.Stat(full); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	s := part(name, shown, kind, func() (io.ReadCloser, error) { return p.c.FS.Open(full) }, nil)
	s.Size = size
	p.s.form = append(p.s.form, s)
	return nil
}

// formFields cuts ";type=x" and the like from the end of a part.
func formFields(s string, file bool) (value string, given map[string]string) {
	given = map[string]string{}
	if file && strings.HasPrefix(s, `"`) {
		if end := strings.IndexByte(s[1:], '"'); end >= 0 {
			value, s = s[1:end+1], s[end+2:]
		}
	} else if !file && strings.HasPrefix(s, `"`) {
		if end := strings.LastIndexByte(s, '"'); end > 0 {
			value, s = strings.ReplaceAll(s[1:end], `\"`, `"`), s[end+1:]
		}
	}
	words := strings.Split(s, ";")
	value += words[0]
	last := ""
	for _, w := range words[1:] {
		key, v, ok := strings.Cut(strings.TrimLeft(w, " "), "=")
		switch {
		case ok && (key == "type" || key == "filename" || key == "headers" || key == "encoder"):
			given[key], last = strings.Trim(v, `"`), key
		case last == "type": // as in type=text/html; charset=utf-8
			given["type"] += ";" + w
		default: // skipped, as curl does
			last = ""
		}
	}
	return value, given
}

// part is one section; its boundary comes later, in place of the mark.
func part(name, file, kind string, open func() (io.ReadCloser, error), b []byte) fetch.Section {
	quote := strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")
	head := "Content-Disposition: form-data"
	if name != "" {
		head += "; name=\"" + quote.Replace(name) + "\""
	}
	if file != "" {
		head += "; filename=\"" + quote.Replace(file) + "\""
	}
	if kind != "" {
		head += "\r\nContent-Type: " + strings.NewReplacer("\r", "", "\n", "").Replace(kind)
	}
	return fetch.Section{Head: []byte(head + "\r\n\r\n"), Bytes: b, File: open}
}

// formPayload puts boundaries between the sections.
func (s *settings) formPayload() (*fetch.Payload, *fetch.Failure) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it does not fail
	mark := strings.Repeat("-", 24) + hex.EncodeToString(random[:])
	var all []fetch.Section
	for i, sec := range s.form {
		if sec.Size < 0 {
			return nil, fetch.Fail(fetch.ExitRead, "Failed to open/read local data from file/application")
		}
		lead := "\r\n--" + mark + "\r\n"
		if i == 0 {
			lead = lead[2:]
		}
		sec.Head = append([]byte(lead), sec.Head...)
		all = append(all, sec)
	}
	all = append(all, fetch.Section{Head: []byte("\r\n--" + mark + "--\r\n")})
	return fetch.Multi(all, "multipart/form-data; boundary="+mark), nil
}

// kindOf is what curl guesses from a name.
func kindOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".gif":
		return "image/gif"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".png":
		return "image/png"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain"
	case ".htm", ".html":
		return "text/html"
	case ".pdf":
		return "application/pdf"
	case ".xml":
		return "application/xml"
	}
	return "application/octet-stream"
}

func (p *parser) continueAt(v string) error {
	p.s.resumed = true
	if v == "-" {
		p.s.resume = -1
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return errNumber
	}
	p.s.resume = n
	return nil
}
