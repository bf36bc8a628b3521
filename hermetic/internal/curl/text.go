package curl

import (
	"errors"
	"fmt"
	"strings"

	"egressd/hermetic/internal/fetch"
)

func (p *parser) Header(v string) error {
	if !strings.HasPrefix(v, "@") {
		p.s.headers = append(p.s.headers, v)
		return nil
	}
	b, err := fetch.Slurp(p.c, v[1:])
	if err != nil {
		p.warn("Failed to open %s!", v[1:])
		return nil
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if line = strings.TrimRight(line, "\r"); line != "" && line[0] != '#' {
			p.s.headers = append(p.s.headers, line)
		}
	}
	return nil
}

func (p *parser) refer(v string) error {
	url, auto := strings.CutSuffix(v, ";auto")
	p.s.referer, p.s.autoRefer = url, auto
	return nil
}

func (p *parser) cookie(v string) error {
	switch {
	case strings.HasPrefix(v, "@"):
		p.s.cookieFrom = append(p.s.cookieFrom, v[1:])
	case strings.Contains(v, "="):
		if p.s.cookieText != "" {
			p.s.cookieText += "; "
		}
		p.s.cookieText += v
		return nil
	default:
		p.s.cookieFrom = append(p.s.cookieFrom, v)
	}
	p.s.cookies = true
	return nil
}

func (p *parser) failing(v string) error {
	p.s.failing = v != "no"
	return nil
}

func (p *parser) failingBody(v string) error {
	p.s.failBody = v != "no"
	return nil
}

func (p *parser) writeOut(v string) error {
	p.s.format = v
	if strings.HasPrefix(v, "@") {
		b, err := fetch.Slurp(p.c, v[1:])
		if err != nil {
			p.warn("Failed to open %s", v[1:])
		}
		p.s.format = strings.NewReplacer("\r", "", "\n", "").Replace(string(b))
	}
	return nil
}

// config reads a file of options: NAME, NAME VALUE, NAME = VALUE, NAME: VALUE,
// -X, quoted values, # comments.
func (p *parser) config(name string) error {
	if p.depth++; p.depth > nestMax {
		return errConfig
	}
	defer func() { p.depth-- }()
	b, err := fetch.Slurp(p.c, name)
	if err != nil {
		if !p.g.silent {
			fmt.Fprintf(p.c.Stderr, "curl: cannot read config from '%s'\n", name)
		}
		return errConfig
	}
	for i, line := range strings.Split(string(b), "\n") {
		key, value, ok := configLine(line)
		if !ok {
			continue
		}
		arg := key
		if !strings.HasPrefix(key, "-") {
			arg = "--" + key
		}
		var rest []string
		if value != "" {
			rest = []string{value}
		}
		if _, err := p.one(arg, rest); err != nil {
			if !errors.Is(err, errUnknown) {
				return err
			}
			p.warn("%s:%d: warning: '%s' %v", name, i+1, key, err)
		}
	}
	return nil
}

func configLine(line string) (key, value string, ok bool) {
	line = strings.TrimSpace(strings.TrimRight(line, "\r"))
	if line == "" || line[0] == '#' {
		return "", "", false
	}
	end := strings.IndexAny(line, " \t=:")
	if end < 0 || end == 1 && line[:2] == "-:" {
		return line, "", true
	}
	key = line[:end]
	value = strings.TrimLeft(line[end:], " \t")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t")
	}
	if !strings.HasPrefix(value, `"`) {
		word, _, _ := strings.Cut(value, " ")
		word, _, _ = strings.Cut(word, "\t")
		return key, word, true
	}
	var b strings.Builder
	for i := 1; i < len(value) && value[i] != '"'; i++ {
		c := value[i]
		if c == '\\' && i+1 < len(value) {
			i++
			switch c = value[i]; c {
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 'v':
				c = '\v'
			}
		}
		b.WriteByte(c)
	}
	return key, b.String(), true
}
