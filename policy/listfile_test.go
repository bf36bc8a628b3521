package policy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed compiles a policy text beside files.
func withFiles(t testing.TB, before *Policy, text string, files map[string]string) (*Policy, error) {
	t.Helper()
	d, err := ParseFile("dir/policy.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	err = d.ReadListsAgain(func(name string) ([]byte, error) {
		data, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
		}
		return []byte(data), nil
	}, before, func(name string, sum [32]byte) bool { return sha256.Sum256([]byte(files[name])) == sum })
	if err != nil {
		return nil, err
	}
	return Compile(d)
}

func mustFiles(t testing.TB, before *Policy, text string, files map[string]string) *Policy {
	t.Helper()
	p, err := withFiles(t, before, text, files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const bothFiles = "allow_file: allow.txt\ndeny_file: deny.txt\n"

// TestListFormats reads lists of other programs.
func TestListFormats(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string
		denied []string
		open   []string
		rule   string // of the first of denied
		format string
	}{
		"domains": {"# ads\nads.test\n\n*.track.test\n.both.test\n", []string{"ads.test", "x.track.test", "both.test", "x.both.test"}, []string{"x.ads.test", "track.test"}, "dir/l:2:1 ads.test", "rules"},
		"hosts":   {"127.0.0.1 localhost\n255.255.255.255 broadcasthost\nfe80::1%lo0 localhost\n0.0.0.0 ads.test  x.test # two\n::\tc.test\n", []string{"x.test", "ads.test", "c.test"}, []string{"a.ads.test", "localhost.test"}, "dir/l:4:19 x.test", "hosts"},
		"adblock": {"[Adblock Plus]\n! t\n||ads.test^\n||b.test^$important,all\n||*.c.test^\n", []string{"ads.test", "x.ads.test", "b.test", "x.c.test"}, []string{"c.test"}, "dir/l:3:3 .ads.test", "adblock"},
		"rpz": {
			"$TTL 300\n@ SOA localhost. root.localhost. (\n 1 ; serial\n 2 3 4 5 )\n  NS localhost.\nads.test CNAME .\n*.ads.test 60 IN CNAME .\nb.test IN A 0.0.0.0\nc.test CNAME *. ; no data\n",
			[]string{"ads.test", "x.ads.test", "b.test", "c.test"},
			[]string{"x.b.test"},
			"dir/l:6:1 ads.test", "rpz",
		},
		"BOM": {"\xef\xbb\xbfads.test\n", []string{"ads.test"}, nil, "dir/l:1:1 ads.test", "rules"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustFiles(t, nil, "allow: ['*.test']\ndeny_file: l\n", map[string]string{"dir/l": tt.text})
			if _, deny := p.Lists(); len(deny) != 1 || deny[0].Format != tt.format {
				t.Fatalf("%+v", deny)
			}
			for i, name := range tt.denied {
				d := p.Decide(Request{Host: host(t, name), Port: 443})
				if d.Reason != ReasonDeniedByRule {
					t.Errorf("%s: %s", name, d.Reason)
				} else if i == 0 && d.Rule.Pos.String()+" "+d.Rule.Text != tt.rule {
					t.Errorf("%s %s, want %s", d.Rule.Pos, d.Rule.Text, tt.rule)
				}
			}
			for _, name := range tt.open {
				if d := p.Decide(Request{Host: host(t, name), Port: 443}); d.Reason == ReasonDeniedByRule {
					t.Errorf("%s is denied by %s", name, d.Rule.Text)
				}
			}
		})
	}
}

// TestListMistakes: what a list says wrong is an error with its place, unless the
// policy says by name that it may be left out.
func TestListMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"0.0.0.0 a.test\n10.0.0.1 b.test\n":            `dir/l:2:1: the address "10.0.0.1" leads somewhere: write 0.0.0.0`,
		"0.0.0.0 a.test\nb.test\n":                     `dir/l:2:1: the line has no name after its address: write 0.0.0.0`,
		"0.0.0.0 a.test b_.test:80\n":                  `dir/l:1:16: "b_.test:80" is no host name`,
		"||a.test^\n||b.test/ads^\n":                   `dir/l:2:1: "||b.test/ads^" covers less than a whole domain`,
		"||a.test^\n||b.test^$third-party\n":           `covers less than a whole domain`,
		"||a.test^\n@@||b.test^\n":                     `dir/l:2:1: an exception (@@) cannot be part of a deny list`,
		"||a.test^\na.test##.ad\n":                     `is no rule about a whole domain`,
		"||a.test^\n||a.test^x\n":                      `covers less than`,
		"||a.test^\n||com^\n":                          `dir/l:2:3: rule host ".com" covers a whole public suffix`,
		"a.test CNAME .\nb.test CNAME rpz-passthru.\n": `dir/l:2:1: an exception (rpz-passthru.)`,
		"a.test CNAME .\nb.test CNAME c.test.\n":       `dir/l:2:1: "b.test CNAME c.test." denies no name: write: ads.example.com CNAME .`,
		"a.test CNAME .\n32.1.2.0.10.rpz-ip CNAME .\n": `is not about one name of the zone`,
		"a.test CNAME .\nb.test. CNAME .\n":            `is not about one name of the zone`,
		"$ORIGIN x.\na.test CNAME .\n":                 `denies no name`,
		"a.test\na..b\n":                               `dir/l:2:1: rule host "a..b" has an empty label`,
		"a.test\n0.0.0.0 b.test\n":                     `dir/l:2:1: rule begins with "0.0.0.0"`,
		"a.test\nraw:b.test:22\n":                      `raw: has no meaning in a deny rule`,
		"a.test\n" + strings.Repeat("a", 9000) + "\n":  `dir/l:2:1: the line is longer than 8192 bytes`,
		"# nothing\n":                                  `dir/l:1:1: the deny list holds no rule`,
		"":                                             `the deny list holds no rule`,
		"0.0.0.0 localhost\n":                          `the deny list holds no rule`,
	} {
		_, err := withFiles(t, nil, "deny_file: l\n", map[string]string{"dir/l": text})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
		skip := map[string]string{"dir/l": "||z.test^\n" + text}
		p, err := withFiles(t, nil, "deny_file: {path: l, unknown: skip, format: adblock}\n", skip)
		if err != nil {
			t.Errorf("%.40q: %v, though what is unknown may be left out", text, err)
		} else if d := p.Decide(Request{Host: host(t, "z.test"), Port: 443}); d.Reason != ReasonDeniedByRule {
			t.Errorf("%.40q: z.test: %s", text, d.Reason)
		}
	}
}

// TestListKeys reads what a policy says about list files.
func TestListKeys(t *testing.T) {
	files := map[string]string{"dir/a": "a.test\n", "dir/sub/b": "b.test\n", filepath.FromSlash("/abs"): "c.test\n"}
	p := mustFiles(t, nil, "allow_file: [a, sub/b]\ndeny_file: [/abs, {path: a, format: rules, unknown: error}]\n", files)
	allow, deny := p.Lists()
	if len(allow) != 2 || allow[1].Path != "dir/sub/b" || allow[1].Rules() != 1 || len(deny) != 2 || deny[0].Path != "/abs" {
		t.Errorf("%+v %+v", allow, deny)
	}
	if a, d := p.Count(); a != 2 || d != 2 {
		t.Errorf("%d allow and %d deny rules", a, d)
	}
	for text, want := range map[string]string{
		"allow_files: a\n":                                `did you mean`,
		"deny_file: {path: a, fromat: hosts}\n":           `has no key "fromat"`,
		"deny_file: {path: a, format: csv}\n":             `dir/policy.yaml:1:30: deny_file.format "csv" is not known: write auto, rules, hosts, adblock, rpz`,
		"deny_file: {path: a, unknown: maybe}\n":          `write error, skip`,
		"deny_file: {format: hosts}\n":                    `deny_file names no file`,
		"allow_file: {path: a}\n":                         `allow_file holds a mapping`,
		"allow_file: ''\n":                                `allow_file names no file`,
		"allow_file: [[a]]\n":                             `allow_file holds a list`,
		"deny_file: missing\n":                            `dir/policy.yaml:1:12: open dir/missing: file does not exist`,
		"allow_file: a\nallow: [x.test, x..test]\n":       `an empty label`,
		"allow_file: &x a\n":                              `anchors`,
		"deny_file: [" + strings.Repeat("a,", 65) + "]\n": `more than 64 list files`,
	} {
		if _, err := withFiles(t, nil, text, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := withFiles(t, nil, "allow_file: a\n", map[string]string{"dir/a": "||a.test^\n"}); err == nil {
		t.Error("an allow list in another format than rules was read")
	}
}

// TestUnreadListDenies: a policy whose lists nobody read is none. And what a
// launcher sends has the lists in it.
func TestUnreadListDenies(t *testing.T) {
	d, err := ParseFile("policy.yaml", []byte("allow: [a.test]\ndeny_file: l\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(d); err == nil || !strings.Contains(err.Error(), "the list l was not read") {
		t.Fatalf("compiled without its deny list: %v", err)
	}
	if err := d.ReadLists(func(string) ([]byte, error) { return []byte("0.0.0.0 a.test\n"), nil }); err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var got Document
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatal(err)
	}
	p, err := Compile(&got)
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(Request{Host: host(t, "a.test"), Port: 443}); d.Reason != ReasonDeniedByRule || d.Rule.Pos != (Pos{"l", 1, 9}) {
		t.Errorf("%+v", d)
	}
	got.DenyFiles[0].Text = []byte("nothing here^\n")
	got.DenyFiles[0].table = nil
	if _, err := Compile(&got); err == nil {
		t.Error("a list that cannot be read was compiled")
	}
}

// TestListReload: a list with the same text is shared, another one is told apart,
// and the difference of long ones is summed up.
func TestListReload(t *testing.T) {
	long := func(n, from int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "h%d.test\n", from+i)
		}
		return b.String()
	}
	text := "allow_file: l\n"
	old := mustFiles(t, nil, text, map[string]string{"dir/l": long(1000, 0)})
	same := mustFiles(t, old, "allow: [x.test]\nallow_file: l\n", map[string]string{"dir/l": long(1000, 0)})
	if old.allow.lists[0].table != same.allow.lists[0].table {
		t.Error("a list that did not change was parsed again")
	}
	if d := same.Diff(old); !slices.Equal(d.Added, []string{"allow: x.test"}) || d.MoreAdded+d.MoreRemoved+len(d.Removed) > 0 {
		t.Errorf("%+v", d)
	}
	if d := same.Decide(Request{Host: host(t, "h7.test"), Port: 443}); !d.Allowed() || d.Rule.Index != 8 || d.Rule.Pos != (Pos{"dir/l", 8, 1}) {
		t.Errorf("%+v", d.Rule)
	}
	next := mustFiles(t, old, text, map[string]string{"dir/l": long(1000, 300)})
	if old.allow.lists[0].table == next.allow.lists[0].table || old.Digest() == next.Digest() {
		t.Error("a list that changed counts as the same")
	}
	if d := next.Diff(old); len(d.Added) != 50 || d.MoreAdded != 250 || len(d.Removed) != 50 || d.MoreRemoved != 250 || d.Added[0] != "allow: h1000.test" {
		t.Errorf("%+v", d)
	}
	if d := next.Diff(mustFiles(t, nil, text, map[string]string{"dir/l": "# other\n" + long(1000, 300)})); len(d.Added)+len(d.Removed)+d.MoreAdded+d.MoreRemoved > 0 {
		t.Errorf("a comment is a difference: %+v", d)
	}
	denied := mustFiles(t, old, "deny_file: l\n", map[string]string{"dir/l": long(1000, 0)})
	if denied.deny.lists[0].table == old.allow.lists[0].table || denied.Digest() == old.Digest() {
		t.Error("an allow list was taken for a deny list")
	}
	if d := denied.Decide(Request{Host: host(t, "h7.test"), Port: 22}); d.Reason != ReasonDeniedByRule {
		t.Errorf("%s", d.Reason)
	}
}

// TestListUnderCeiling: lists of a session and of its ceiling both count.
func TestListUnderCeiling(t *testing.T) {
	own := mustFiles(t, nil, "allow_file: l\n", map[string]string{"dir/l": "a.test\nb.test\n"})
	ceiling := mustFiles(t, nil, "allow: ['*.test', .test.test]\ndeny_file: l\n", map[string]string{"dir/l": "||b.test^\n"})
	p := own.Under(ceiling)
	if d := p.Decide(Request{Host: host(t, "a.test"), Port: 443}); !d.Allowed() {
		t.Errorf("a.test: %s", d.Reason)
	}
	if d := p.Decide(Request{Host: host(t, "b.test"), Port: 443}); d.Reason != ReasonCeiling || d.Rule.Pos.File != "dir/l" {
		t.Errorf("b.test: %s", d.Reason)
	}
}

// TestListWarnings: rules of a list that are wider than they look are told.
func TestListWarnings(t *testing.T) {
	p := mustFiles(t, nil, "allow_file: l\n", map[string]string{"dir/l": "a.test\n*.github.io\n*.github.io:443\n"})
	w := p.Warnings()
	if len(w) != 2 || w[0].Pos.Line+w[1].Pos.Line != 5 {
		t.Errorf("%v", w)
	}
}

// TestListDecidesWithoutAllocating: a rule that decided before is kept ready.
func TestListDecidesWithoutAllocating(t *testing.T) {
	p := mustFiles(t, nil, bothFiles, map[string]string{"dir/allow.txt": "a.test\n*.b.test\n", "dir/deny.txt": "||c.test^\n"})
	for _, name := range []string{"a.test", "x.y.b.test", "q.c.test", "no.example"} {
		r := Request{Host: host(t, name), Port: 443}
		if n := testing.AllocsPerRun(100, func() { p.Decide(r) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
