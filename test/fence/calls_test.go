package fence

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// ban is a call that belongs to named places only.
type ban struct {
	pkg    string
	names  string // regular expression over the whole name
	tests  bool   // banned in tests too
	except map[string]string
	reason string
}

var bans = []ban{
	{
		pkg: "net", names: `Dial(TCP|UDP|IP|Unix|Timeout)?`,
		except: map[string]string{"test/e2e/probe": "the attacker dials by every means", "bench": "load and origins, no gate"},
		reason: "a dial without a second look at the literal address is a way round the policy; use a net.Dialer with ControlContext",
	},
	{
		pkg: "net", names: `(Lookup.*|Resolve(TCP|UDP|IP)Addr|DefaultResolver)`,
		except: map[string]string{"test/e2e/probe": "the attacker resolves by every means"},
		reason: "names are resolved once, after the verdict, by dnsfilter.Resolver; anything else is a DNS query nobody judged",
	},
	{
		pkg: "net/http", names: `(DefaultClient|DefaultTransport|DefaultServeMux|Get|Head|Post|PostForm|Handle|HandleFunc|ListenAndServe.*|ProxyFromEnvironment)`, tests: true,
		reason: "global state that takes proxies from the environment and follows redirects past the policy",
	},
	{
		pkg: "os", names: `(Getenv|LookupEnv|Environ|ExpandEnv|Setenv|Unsetenv|Clearenv)`,
		except: map[string]string{"cmd": "flags and environment become fields here", "test/e2e/probe": "it looks at what the sandbox gave it", "bench/startup": "hands its own environment on"},
		reason: "configuration comes in by fields",
	},
	{
		pkg: "time", names: `Sleep`, tests: true,
		except: map[string]string{"test/e2e/probe": "the attacker is slow on purpose"},
		reason: "readiness is an event: a channel, a listener, a context, or a synctest bubble",
	},
	{
		pkg: "os", names: `Create`,
		reason: "follows links and truncates with mode 0666; say the flags and the mode with os.OpenFile",
	},
	{
		pkg: "github.com/prometheus/client_golang/prometheus/promauto", names: `.*`, tests: true,
		reason: "registers globally",
	},
	{
		pkg: "github.com/vishvananda/netns", names: `(Set|Setns|New|NewNamed)`,
		except: map[string]string{"netns": "wrapped once, on a locked thread that is never given back"},
		reason: "changes the calling thread and leaves the danger to the caller",
	},
	{
		pkg: "log", names: `.*`,
		except: map[string]string{
			"proxy":        "adapters for libraries that know only log.Logger",
			"internal/cli": "drops what net/http writes to the global logger by itself",
		},
		reason: "slog by injection; the global logger writes where nobody asked",
	},
	{
		pkg: "log/slog", names: `(Default|SetDefault|Debug|Info|Warn|Error)`,
		reason: "the global logger; use the one that was injected",
	},
	{
		pkg: "io/ioutil", names: `.*`, tests: true, reason: "deprecated",
	},
}

func TestBannedCalls(t *testing.T) {
	res := make([]*regexp.Regexp, len(bans))
	for i, b := range bans {
		res[i] = regexp.MustCompile("^(?:" + b.names + ")$")
	}
	for _, s := range sources(t) {
		s.uses(func(pkg, name string, at ast.Node) {
			for i, b := range bans {
				if b.pkg != pkg || !res[i].MatchString(name) || s.isTest() && !b.tests {
					continue
				}
				if name == "Sleep" && s.isTest() && s.imports("testing/synctest") {
					continue // in a bubble it moves the bubble's clock and waits for nothing
				}
				if name == "Sleep" && s.isTest() && strings.Contains(s.lineOf(at), "// polling: ") {
					continue // between looks at what tells nobody, with the reason beside it
				}
				if !excepted(s, b.except) {
					t.Errorf("%s: %s.%s: %s", s.at(at), pkg, name, b.reason)
				}
			}
		})
	}
}

func excepted(s source, except map[string]string) bool {
	for place := range except {
		if s.below(place) {
			return true
		}
	}
	return false
}

// An exception for a place that is gone is an exception for whoever moves in.
func TestExceptionsExist(t *testing.T) {
	all := sources(t)
	for _, b := range bans {
		for place := range b.except {
			found := false
			for _, s := range all {
				found = found || s.below(place)
			}
			if !found {
				t.Errorf("the ban of %s.%s excepts %s, which no longer exists", b.pkg, b.names, place)
			}
		}
	}
}

// earlyStart is the one place that acts before main: a process that was started
// as a sandbox's init becomes it before the packages are initialised that only
// a supervisor needs, which would cost every start 1.8 of 11 ms, and never comes
// to main. ARCHITECTURE.md, "Lifetimes".
const earlyStart = "sandbox/process/inside/early_linux.go"

func TestEarlyStartIsAlone(t *testing.T) {
	for _, s := range sources(t) {
		if s.rel == earlyStart {
			if n := len(s.file.Decls); n != 2 {
				t.Errorf("%s has %d declarations: it holds the import and the one func init", s.rel, n)
			}
			return
		}
	}
	t.Errorf("%s is excepted here, and no longer exists", earlyStart)
}

// os.Exit skips every deferred clean-up, so only main.go may call it.
func TestExitOnlyInMain(t *testing.T) {
	for _, s := range sources(t) {
		s.uses(func(pkg, name string, at ast.Node) {
			if s.file.Name.Name == "main" && (s.rel == s.dir()+"/main.go" || s.rel == s.dir()+"/main_linux.go") || s.isTest() || s.rel == earlyStart {
				return
			}
			if pkg == "os" && name == "Exit" || pkg == "syscall" && name == "Exit" || pkg == "log" && name == "Fatal" {
				t.Errorf("%s: %s.%s outside main.go", s.at(at), pkg, name)
			}
		})
	}
}

func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && s.rel != earlyStart {
				t.Errorf("%s: func init: what runs before main cannot be refused, tested or ordered", s.at(f))
			}
		}
	}
}
