package fence

// room says what one package (or, with a trailing "/...", a tree) may import.
type room struct {
	path    string   // below the module
	ours    []string // rooms of ours it may import; a trailing "/..." is a tree
	outside []string // modules from outside that it may import, by import path prefix; x/sys is free
	std     []string // standard packages it may NOT import
	reason  string
}

// rooms is DESIGN's table of rooms as a test. A package that no row covers is
// an error: name the room before building in it.
var rooms = []room{
	{
		path:    "policy",
		outside: []string{"golang.org/x/net/idna", "golang.org/x/net/publicsuffix", "go.yaml.in/yaml/v3"},
		std:     []string{"net", "net/http", "time", "log", "log/slog", "os", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "syscall"},
		reason:  "the one decision is pure: no clock, no network, no logging, so that it gives one answer for one question",
	},
	{
		path:   "policy/presets",
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "data files",
	},
	{
		path:   "event",
		ours:   []string{"policy"},
		std:    []string{"net/http", "os/exec"},
		reason: "a leaf: every door writes it, it knows none of them",
	},
	{
		path:    "proxy",
		ours:    []string{"policy", "event", "internal/..."},
		outside: []string{"github.com/elazarl/goproxy", "golang.org/x/net", "golang.org/x/crypto/cryptobyte", "golang.org/x/sync"},
		std:     []string{"os/exec"},
		reason:  "resolution reaches the doors through their own interface; a door that knew a resolver or a sandbox could take its word instead of asking",
	},
	{
		path:    "dnsfilter",
		ours:    []string{"policy", "event", "internal/..."},
		outside: []string{"github.com/miekg/dns", "golang.org/x/sync", "golang.org/x/net/ipv4", "golang.org/x/net/ipv6"},
		std:     []string{"net/http", "os/exec"},
		reason:  "never imports proxy, nor proxy it: main joins them",
	},
	{
		path:   "netns/netlink",
		std:    []string{"net", "net/netip", "net/http", "encoding/json", "log/slog", "os/exec"},
		reason: "as netns/capture, which imports it",
	},
	{
		path:   "netns/capture",
		ours:   []string{"netns/netlink"},
		std:    []string{"net", "net/netip", "net/http", "encoding/json", "log/slog", "os/exec"},
		reason: "pid 1 of every run starts with it, so it imports next to nothing",
	},
	{
		path:    "netns/rules",
		ours:    []string{"netns/capture"},
		outside: []string{"github.com/google/nftables", "github.com/mdlayher/netlink"},
		reason:  "what the rules of package capture mean; tests import it, nothing that ships does",
	},
	{
		path:    "netns",
		ours:    []string{"netns/capture"},
		outside: []string{"github.com/vishvananda/netns"},
		std:     []string{"net/http", "os/exec"},
		reason:  "plumbing that knows no policy; no helper binary either, so no os/exec",
	},
	{
		path:   "netns/pod",
		ours:   []string{"netns", "netns/capture", "netns/netlink"},
		std:    []string{"net", "net/http", "os/exec", "encoding/json", "log", "log/slog"},
		reason: "rules and how the kernel takes them, in an init container that has nothing else",
	},
	{
		path:   "sandbox",
		ours:   []string{"policy", "event"},
		std:    []string{"net", "net/http"},
		reason: "what to run and what a backend is; how is each backend's business",
	},
	{
		path:   "sandbox/hermetic/limits",
		reason: "counters; everything in the tier asks it",
	},
	{
		path:   "sandbox/hermetic/vfs",
		std:    []string{"net", "net/http", "os/exec"},
		reason: "the one way to a file: it knows no command and no shell",
	},
	{
		path:   "sandbox/hermetic/command",
		ours:   []string{"sandbox/hermetic/limits", "sandbox/hermetic/vfs"},
		std:    []string{"os", "net/http", "os/exec"},
		reason: "what a command is given; it has no way to the machine to give",
	},
	{
		path:   "sandbox/hermetic/regex",
		std:    []string{"os", "net", "net/http", "os/exec"},
		reason: "POSIX regular expressions, pure",
	},
	{
		path: "sandbox/hermetic/shell",
		ours: []string{
			"sandbox/hermetic/limits", "sandbox/hermetic/vfs", "sandbox/hermetic/command", "sandbox/hermetic/regex", "sandbox/hermetic/shell/arith",
			"sandbox/hermetic/shell/layout", "sandbox/hermetic/shell/pattern", "sandbox/hermetic/shell/scan", "sandbox/hermetic/shell/stream",
		},
		outside: []string{"mvdan.cc/sh/v3/syntax"},
		std:     []string{"net", "net/http", "os/exec", "os/user", "path/filepath"},
		reason:  "the language; it knows commands as a table, and the parser of mvdan.cc/sh but not its interpreter",
	},
	{
		path:   "sandbox/hermetic/shell/arith",
		std:    []string{"os", "net", "net/http", "os/exec", "time"},
		reason: "arithmetic, pure",
	},
	{
		path:    "sandbox/hermetic/shell/layout",
		outside: []string{"mvdan.cc/sh/v3/syntax"},
		std:     []string{"os", "net", "net/http", "os/exec", "time"},
		reason:  "a tree as text, pure",
	},
	{
		path:   "sandbox/hermetic/shell/pattern",
		std:    []string{"os", "net", "net/http", "os/exec", "time"},
		reason: "shell patterns, pure",
	},
	{
		path:    "sandbox/hermetic/shell/scan",
		outside: []string{"mvdan.cc/sh/v3/syntax"},
		std:     []string{"os", "net", "net/http", "os/exec", "time"},
		reason:  "a text as a tree, pure",
	},
	{
		path:   "sandbox/hermetic/shell/stream",
		ours:   []string{"sandbox/hermetic/vfs"},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "what descriptors refer to: pipes are memory, and package os is there for the worker's own input",
	},
	{
		path:   "sandbox/hermetic/shell/conform",
		reason: "tests alone: they join all tables and compare with recorded bash",
	},
	{
		path:    "sandbox/hermetic/web",
		ours:    []string{"sandbox/hermetic/command", "sandbox/hermetic/vfs", "sandbox/hermetic/limits"},
		outside: []string{"golang.org/x/net"},
		std:     []string{"os", "os/exec"},
		reason:  "curl and wget: their one connection is to the proxy that the session hands them",
	},
	{
		path:   "sandbox/hermetic/control",
		ours:   []string{"sandbox/hermetic/limits"},
		std:    []string{"net/http", "os/exec"},
		reason: "what launcher and worker say to each other",
	},
	{
		path:    "sandbox/hermetic/inside",
		ours:    []string{"sandbox/hermetic/...", "internal/seccomp", "internal/landlock"},
		outside: []string{"golang.org/x/sync"},
		std:     []string{"os/exec"},
		reason:  "the worker: it builds the walls, then runs the script; policy and engine stay outside",
	},
	{
		path:   "sandbox/hermetic",
		ours:   []string{"policy", "event", "sandbox", "proxy", "dnsfilter", "sandbox/hermetic/control", "sandbox/hermetic/limits", "internal/..."},
		std:    []string{"net/http"},
		reason: "the tier outside: it joins engine and worker",
	},
	{
		path:    "sandbox/hermetic/data",
		ours:    []string{"sandbox/hermetic/command", "sandbox/hermetic/vfs", "sandbox/hermetic/limits", "sandbox/hermetic/regex", "sandbox/hermetic/gnu", "sandbox/hermetic/when"},
		outside: []string{"github.com/itchyny/gojq", "go.yaml.in/yaml/v3"},
		std:     []string{"os", "net", "net/http", "os/exec", "io/ioutil", "path/filepath"},
		reason:  "as the commands, with a parser of jq and one of YAML",
	},
	{
		path:   "sandbox/hermetic/grep",
		ours:   []string{"sandbox/hermetic/command", "sandbox/hermetic/limits", "sandbox/hermetic/regex", "sandbox/hermetic/vfs", "sandbox/hermetic/gnu/...", "internal/gitignore"},
		std:    []string{"os", "net", "net/http", "os/exec", "io/ioutil", "path/filepath"},
		reason: "as the commands; rg leaves out what git ignores",
	},
	{
		path: "sandbox/hermetic/...",
		ours: []string{
			"sandbox/hermetic/command", "sandbox/hermetic/vfs", "sandbox/hermetic/limits", "sandbox/hermetic/regex", "sandbox/hermetic/text",
			"sandbox/hermetic/gnu", "sandbox/hermetic/when", "sandbox/hermetic/modes", "sandbox/hermetic/inode", "sandbox/hermetic/shell/pattern",
		},
		std:    []string{"os", "net", "net/http", "os/exec", "io/ioutil", "path/filepath"},
		reason: "commands: Go functions over the session's file system and streams, with no way to the machine",
	},
	{
		path:   "sandbox/vercel/stage",
		ours:   []string{"internal/gitignore"},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "files out and files in: what comes back is judged without a network in sight, and git is not run on it",
	},
	{
		path:   "sandbox/kept",
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "records in files: what runs, and how, is each tier's business",
	},
	{
		path:   "sandbox/vercel/api/firewall",
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "words of the wire, pure",
	},
	{
		path:   "sandbox/vercel/api/account",
		std:    []string{"net", "net/http", "os", "os/exec", "log"},
		reason: "values in, credentials out: the environment is read by commands",
	},
	{
		path:   "sandbox/vercel/api",
		ours:   []string{"sandbox/vercel/api/firewall", "sandbox/vercel/api/account"},
		std:    []string{"os", "os/exec", "log"},
		reason: "the client of the hosted API: of use on its own, so it knows no policy, no workspace and no environment",
	},
	{
		path:   "sandbox/vercel",
		ours:   []string{"policy", "event", "sandbox", "sandbox/vercel/..."},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "the tier: it joins client, translation and files, and knows neither engine nor the records of launch",
	},
	{
		path:   "sandbox/vercel/network",
		ours:   []string{"policy", "sandbox"},
		std:    []string{"net", "net/http", "os", "os/exec", "log/slog"},
		reason: "a policy in Vercel's words, pure, so that a test can show what is never said",
	},
	{
		path:   "internal/tap",
		std:    []string{"net", "net/http", "os/exec"},
		reason: "bytes on their way",
	},
	{
		path:   "sandbox/process/inside",
		ours:   []string{"netns/capture", "sandbox/process/control", "sandbox/process/spawn", "internal/seccomp", "internal/foreground", "internal/kernelversion", "internal/landlock", "internal/lookpath", "internal/mountinfo"},
		std:    []string{"net", "net/http", "encoding/json", "regexp", "text/template", "log/slog", "os/exec", "os/signal"},
		reason: "pid 1 of every run: it starts fast, and it holds nothing that the harness could want",
	},
	{
		path:   "sandbox/process/spawn",
		std:    []string{"fmt", "strings", "reflect", "time", "net", "context"},
		reason: "it is initialised before nearly everything, so that an init can be started that early",
	},
	{
		path:   "cmd/launch/ahead",
		ours:   []string{"sandbox/process/spawn"},
		std:    []string{"fmt", "strings", "reflect", "time", "net", "context"},
		reason: "as sandbox/process/spawn",
	},
	{
		path:   "sandbox/process/control",
		std:    []string{"net", "net/http", "encoding/json", "encoding/gob", "log/slog"},
		reason: "the talk with pid 1, which starts with what this imports",
	},
	{
		path:    "sandbox/process/...",
		ours:    []string{"policy", "event", "sandbox", "proxy", "dnsfilter", "netns", "internal/..."},
		outside: []string{"golang.org/x/term", "golang.org/x/sync"},
		std:     []string{"net/http"},
		reason:  "the one tier that joins engine and namespace",
	},
	{
		path:    "cmd/launch",
		ours:    []string{"..."},
		outside: []string{"golang.org/x/term", "golang.org/x/sync"},
		std:     []string{"math/rand", "math/rand/v2"},
		reason:  "flags to config to run; anything that needs more is a room",
	},
	{
		path:    "cmd/egressd",
		ours:    []string{"..."},
		outside: []string{"golang.org/x/sync"},
		std:     []string{"math/rand", "math/rand/v2"},
		reason:  "flags and environment to config to run; anything that needs more is a room",
	},
	{
		path:    "internal/daemon",
		ours:    []string{"policy", "event", "proxy", "dnsfilter", "netns", "internal/..."},
		outside: []string{"golang.org/x/sync"},
		std:     []string{"net/http", "os/exec", "os/signal"},
		reason:  "configuration to listeners, reload and drain; signals, flags and the environment belong to the command",
	},
	{
		path:   "internal/gate",
		ours:   []string{"policy", "event", "proxy", "dnsfilter", "netns", "internal/ca"},
		std:    []string{"net/http", "os/exec"},
		reason: "joins the doors of one policy; both binaries use it, so it knows neither a sandbox nor a daemon",
	},
	{
		path:   "internal/session",
		ours:   []string{"policy", "event", "dnsfilter", "netns", "internal/ca", "internal/gate", "internal/gateflags", "internal/unixsocket"},
		std:    []string{"net/http", "os/exec"},
		reason: "both halves of one conversation: it knows neither the sandbox whose doors are handed over nor the daemon that takes them",
	},
	{
		path:    "internal/e2e/...",
		outside: []string{"github.com/miekg/dns", "github.com/mdlayher/netlink", "golang.org/x/net"},
		reason:  "black box: it drives the real binary and shares no code with it, not even a constant",
	},
	{
		path:   "internal/fence",
		reason: "reads the tree from outside; to import a room would be to be inside",
	},
	{
		path:    "internal/metrics",
		ours:    []string{"policy", "event"},
		outside: []string{"github.com/prometheus/client_golang/prometheus"},
		std:     []string{"os", "os/exec", "net/http/pprof"},
		reason:  "a sink over events and a registry of its own; what it shows of a gate is handed to it by func",
	},
	{
		path:    "internal/verify",
		outside: []string{"golang.org/x/net/dns/dnsmessage"},
		std:     []string{"os/exec", "log", "log/slog"},
		reason:  "it judges egressd from outside, as an agent would, and shares no code with it",
	},
	{
		path:   "internal/vercelapi/machine",
		ours:   []string{"sandbox", "sandbox/process", "internal/lookpath"},
		std:    []string{"net/http", "os/exec"},
		reason: "a computer for the double of the hosted API: it knows nothing of the API",
	},
	{
		path:   "internal/vercelapi",
		ours:   []string{"policy", "event", "proxy", "dnsfilter", "sandbox/process", "internal/vercelapi/machine", "internal/gate", "internal/session", "internal/ca"},
		reason: "the double of the hosted API: no edge to sandbox/vercel, so that a misreading in one shows in the other",
	},
	{
		path:    "internal/...",
		ours:    []string{"policy", "event", "internal/..."},
		outside: []string{"golang.org/x"},
		std:     []string{"net/http/pprof"},
		reason:  "one mechanism each: a mechanism that knows a door or a sandbox belongs there",
	},
	{
		path:   "bench/...",
		ours:   []string{"policy", "bench/install"},
		reason: "drives real binaries over sockets; measuring inside the process measures something else",
	},
}
