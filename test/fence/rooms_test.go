package fence

import "slices"

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
var rooms = slices.Concat(sandboxRooms, policyRooms, proxyRooms, []room{
	{
		path:   "event",
		ours:   []string{"policy", "policy/files", "event/internal/line"},
		std:    []string{"net/http", "os/exec"},
		reason: "a leaf: every door writes it, it knows none of them",
	},
	{
		path:   "event/internal/line",
		std:    []string{"net", "net/http", "os", "os/exec"},
		reason: "the format alone",
	},
	{
		path:   "internal/size",
		std:    []string{"net", "net/http", "os", "os/exec"},
		reason: "one number, read in one way for both binaries",
	},
	{
		path:   "event/phase",
		std:    []string{"net", "net/http", "os", "os/exec"},
		reason: "names of durations, for those that measure and those that count",
	},
	{
		path:   "event/flood",
		ours:   []string{"policy", "event"},
		std:    []string{"net", "net/http", "os", "os/exec"},
		reason: "a sink in front of a sink",
	},
	{
		path:   "event/eventtest",
		ours:   []string{"event", "event/internal/line"},
		std:    []string{"net", "net/http", "os", "os/exec"},
		reason: "for tests; no row lets shipping code import it",
	},
	{
		path:    "dnsfilter",
		ours:    []string{"policy", "event", "internal/accept", "internal/linux/mmsg"},
		outside: []string{"github.com/miekg/dns", "golang.org/x/sync", "golang.org/x/net/ipv4", "golang.org/x/net/ipv6"},
		std:     []string{"net/http", "os/exec"},
		reason:  "never imports proxy, nor proxy it: main joins them",
	},
	{
		path:   "netns/netlink",
		std:    []string{"net", "net/netip", "net/http", "encoding/json", "log/slog", "os/exec"},
		reason: "the one codec of netlink(7); as netns/capture, which imports it",
	},
	{
		path:   "netns/nft",
		ours:   []string{"netns/netlink"},
		std:    []string{"net", "net/http", "os/exec", "encoding/json", "log", "log/slog"},
		reason: "the one writer of nftables: words and their encoding, no rule of its own",
	},
	{
		path:   "netns/capture",
		ours:   []string{"netns/netlink"},
		std:    []string{"net", "net/netip", "net/http", "encoding/json", "log/slog", "os/exec"},
		reason: "pid 1 of every run starts with it, so it imports next to nothing",
	},
	{
		path:   "netns/capture/rules",
		ours:   []string{"netns/capture", "netns/nft"},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "what the encoded rules of netns/capture mean; tests import it, nothing that ships does",
	},
	{
		path:    "netns",
		ours:    []string{"netns/capture", "netns/netlink"},
		outside: []string{"github.com/vishvananda/netns"},
		std:     []string{"net/http", "os/exec"},
		reason:  "plumbing that knows no policy; no helper binary either, so no os/exec",
	},
	{
		path:   "netns/pod",
		ours:   []string{"netns/capture", "netns/netlink", "netns/nft"},
		std:    []string{"net", "net/http", "os/exec", "encoding/json", "log", "log/slog"},
		reason: "rules and how the kernel takes them, in an init container that has nothing else",
	},
	{
		path: "internal/run",
		ours: []string{
			"policy", "dnsfilter", "gate", "gate/handover", "internal/cli", "internal/cli/policyflags", "internal/run/agents", "internal/run/approve", "internal/run/feed", "internal/run/interrupt", "internal/run/journal", "internal/run/ledger", "internal/run/live", "internal/run/receipt/format",
			"internal/run/microvm", "internal/run/overlay", "internal/run/place", "internal/run/project", "internal/run/records", "internal/run/runas", "internal/run/script", "internal/run/secrets", "internal/run/summary", "internal/run/tap",
			"internal/run/trail", "policy/files",
			"sandbox", "sandbox/advisory", "sandbox/hermetic", "sandbox/process", "sandbox/process/spawn", "sandbox/vercel", "sandbox/vercel/api", "sandbox/vercel/inside", "sandbox/vercel/network",
		},
		outside: []string{"golang.org/x/term"},
		std:     []string{"net/http", "os/exec"},
		reason:  "one run, from what the command line says to the exit code: it joins tiers, gate and records, and knows no command of launch",
	},
	{
		path:    "internal/run/sandboxes",
		outside: []string{"golang.org/x/term"},
		ours:    []string{"internal/cli", "internal/run", "internal/run/microvm", "internal/run/records", "sandbox", "sandbox/vercel", "sandbox/vercel/api"},
		std:     []string{"net", "net/http", "os/exec", "log"},
		reason:  "what launch sandbox does: it runs programs as a command line would, so it stands above internal/run",
	},
	{
		path: "internal/run/commands/...",
		ours: []string{
			"policy", "policy/files", "event", "dnsfilter", "internal/cli", "internal/cli/explain", "internal/cli/policyflags", "internal/run", "internal/run/...",
			"sandbox", "sandbox/vercel/fake",
		},
		outside: []string{"golang.org/x/term"},
		std:     []string{"os/exec"},
		reason:  "the commands of launch beside a run, one room for each group: they read a command line and print an answer, so they stand above internal/run",
	},
	{
		path: "internal/run/microvm",
		ours: []string{
			"policy", "internal/cli", "internal/cli/explain", "internal/run/records",
			"sandbox", "sandbox/vercel", "sandbox/vercel/api", "sandbox/vercel/api/account", "sandbox/vercel/network",
		},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "joins the Vercel tier, which knows neither flags nor records, with both",
	},
	{
		path:   "internal/run/script",
		ours:   []string{"hermetic/limits", "internal/cli", "sandbox"},
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "flags and files in, a command line out",
	},
	{
		path:    "internal/run/doctor",
		ours:    []string{"internal/cli", "internal/run", "internal/run/kernel", "internal/run/microvm", "netns/capture", "sandbox", "sandbox/hermetic", "sandbox/process"},
		outside: []string{"golang.org/x/term"},
		std:     []string{"net", "net/http", "os/exec"},
		reason:  "it tries every tier and a real run, so it stands above them; package kernel knows the kernel alone",
	},
	{
		path:   "internal/run/double",
		ours:   []string{"sandbox/vercel/fake"},
		std:    []string{"os/exec", "log"},
		reason: "the double of the hosted API and a listener",
	},
	{
		path:   "internal/run/overlay",
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "two directories and their differences: which names may be written is the file gate's to say",
	},
	{
		path:   "internal/run/place",
		ours:   []string{"policy/files", "sandbox", "sandbox/process"},
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "the machine as the file rules see it: directories and links, no rule of its own",
	},
	{
		path:   "internal/run/project",
		ours:   []string{"policy"},
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "which files were found and whether they are trusted: what of an untrusted one counts is policy's to say",
	},
	{
		path:   "internal/run/records",
		ours:   []string{"internal/linux/procstat"},
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "records in files: what runs, and how, is each tier's business",
	},
	{
		path:   "internal/run/receipt",
		ours:   []string{"internal/run/receipt/canonical", "internal/run/receipt/chain", "internal/run/receipt/format"},
		std:    []string{"net/http", "os", "os/exec", "log", "log/slog"},
		reason: "verifies what its subpackages write: pure",
	},
	{
		path:   "internal/run/receipt/attest",
		ours:   []string{"internal/run/receipt/canonical", "internal/run/receipt/execution", "internal/run/receipt/format"},
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "the same evidence in the forms of others: pure",
	},
	{
		path:   "internal/run/receipt/...",
		ours:   []string{"internal/run/receipt/canonical", "internal/run/receipt/chain", "internal/run/receipt/execution"},
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "formats, hashes and signatures: pure",
	},
	{
		path:   "internal/run/workspace/redact",
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "bytes in, bytes out",
	},
	{
		path:   "internal/run/workspace",
		ours:   []string{"hermetic/gitignore", "internal/run/receipt/canonical", "internal/run/receipt/format", "internal/run/workspace/redact"},
		std:    []string{"net", "net/http", "log", "log/slog"},
		reason: "files and git, the one program that it starts: it knows no run and no network",
	},
	{
		path:   "internal/run/ledger",
		ours:   []string{"event", "internal/run/receipt", "internal/run/receipt/canonical", "internal/run/receipt/chain", "internal/run/receipt/execution", "internal/run/receipt/format"},
		std:    []string{"net/http", "log", "log/slog"},
		reason: "the journal of a run on disk, and the keys: a file, a command, an ssh agent",
	},
	{
		path:   "internal/run/order",
		ours:   []string{"internal/run/agents", "internal/run/receipt/canonical", "internal/run/receipt/execution", "internal/run/receipt/format"},
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "what a contract orders, and whether it may: pure",
	},
	{
		path:   "internal/run/job",
		ours:   []string{"policy", "internal/run", "internal/run/ledger", "internal/run/order", "internal/run/receipt/...", "internal/run/workspace", "internal/run/workspace/redact"},
		std:    []string{"net", "net/http", "os/exec", "log"},
		reason: "one contract from workspace to receipt: it runs a program as a command line would, so it stands above internal/run",
	},
	{
		path:   "internal/run/plane",
		ours:   []string{"internal/run/receipt/canonical", "internal/run/receipt/chain", "internal/run/receipt/format"},
		std:    []string{"os", "os/exec", "log", "log/slog"},
		reason: "a client of one HTTP API: it keeps nothing and runs nothing",
	},
	{
		path:   "internal/run/plane/fake",
		ours:   []string{"internal/run/receipt", "internal/run/receipt/..."},
		std:    []string{"os", "os/exec", "log", "log/slog"},
		reason: "the double of that API: it shares no code with the client",
	},
	{
		path:   "internal/run/runner",
		ours:   []string{"policy", "internal/run", "internal/run/job", "internal/run/ledger", "internal/run/order", "internal/run/plane", "internal/run/receipt/...", "internal/run/script", "internal/run/workspace/redact"},
		std:    []string{"net", "net/http", "log"},
		reason: "claims and delivers; each run is a process of its own",
	},
	{
		path:   "internal/run/tap",
		std:    []string{"net", "net/http", "os/exec"},
		reason: "bytes on their way",
	},
	{
		path:   "internal/linux/ipc",
		std:    []string{"net", "net/http", "encoding/json", "encoding/gob", "reflect", "context", "log/slog"},
		reason: "pid 1 of every run starts with it: messages and descriptors, no poller, no reflection",
	},
	{
		path:   "cmd/launch/ahead",
		ours:   []string{"sandbox/process/spawn"},
		std:    []string{"fmt", "strings", "reflect", "time", "net", "context"},
		reason: "as sandbox/process/spawn",
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
		ours:    []string{"policy", "policy/upstream", "event", "event/flood", "proxy", "proxy/ca", "dnsfilter", "netns", "gate", "gate/handover", "internal/daemon/...", "internal/linux/..."},
		outside: []string{"golang.org/x/sync"},
		std:     []string{"net/http", "os/exec", "os/signal"},
		reason:  "configuration to listeners, reload and drain; signals, flags and the environment belong to the command",
	},
	{
		path:   "gate",
		ours:   []string{"policy", "policy/upstream", "event", "event/phase", "proxy", "dnsfilter", "netns", "proxy/ca"},
		std:    []string{"net/http", "os/exec"},
		reason: "joins the doors of one policy; both binaries use it, so it knows neither a sandbox nor a daemon",
	},
	{
		path:   "gate/handover",
		ours:   []string{"policy", "event", "event/phase", "dnsfilter", "netns", "proxy/ca", "gate", "internal/linux/unixsocket"},
		std:    []string{"net/http", "os/exec"},
		reason: "both halves of one conversation: it knows neither the sandbox whose doors are handed over nor the daemon that takes them",
	},
	{
		path:   "test/userns",
		reason: "runs tests again as root of namespaces; it knows none of them",
	},
	{
		path:   "test/iproute",
		reason: "sets networks up for tests; it shares no code with what they drive",
	},
	{
		path:    "test/e2e/...",
		outside: []string{"github.com/miekg/dns", "golang.org/x/net"},
		reason:  "black box: it drives the real binary and shares no code with it, not even a constant",
	},
	{
		path:   "test/clients",
		reason: "drives the real binary with real clients",
	},
	{
		path:   "test/containers",
		reason: "drives the real image",
	},
	{
		path:   "test/docs",
		reason: "runs what the pages say",
	},
	{
		path:   "test/console",
		std:    []string{"net", "net/http"},
		reason: "a person at a terminal, for tests of any room",
	},
	{
		path:   "test/picture",
		std:    []string{"net", "net/http", "os/exec"},
		reason: "a drawing of text: who runs what is drawn is test/clients' to say",
	},
	{
		path:   "test/nohup",
		std:    []string{"net", "os/exec"},
		reason: "one thing that tests of several rooms do before they start programs",
	},
	{
		path:   "test/fence",
		reason: "reads the tree from outside; to import a room would be to be inside",
	},
	{
		path:    "internal/daemon/metrics",
		ours:    []string{"policy", "policy/room", "event", "event/phase"},
		outside: []string{"github.com/prometheus/client_golang/prometheus"},
		std:     []string{"os", "os/exec", "net/http/pprof"},
		reason:  "a sink over events and a registry of its own; what it shows of a gate is handed to it by func",
	},
	{
		path:    "internal/daemon/verify",
		outside: []string{"golang.org/x/net/dns/dnsmessage"},
		std:     []string{"os/exec", "log", "log/slog"},
		reason:  "it judges egressd from outside, as an agent would, and shares no code with it",
	},
	{
		path:   "internal/cli",
		ours:   []string{"internal/cli/completion", "internal/nearest"},
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "what two command lines have in common: it knows no command",
	},
	{
		path:   "internal/cli/policyflags",
		ours:   []string{"policy", "policy/files", "policy/upstream", "gate", "internal/cli"},
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "flags in, a policy out; the name of the host's loopback is the gate's",
	},
	{
		path:   "internal/cli/explain",
		ours:   []string{"policy", "policy/files", "internal/cli", "internal/cli/policyflags"},
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "a policy in words, the same for both commands: it stands below what runs a program or a daemon",
	},
	{
		path:   "internal/cli/completion",
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "flag sets in, a script out",
	},
	{
		path:   "internal/accept",
		std:    []string{"net/http", "os", "os/exec", "log"},
		reason: "a leaf below every server: errors in, an answer out",
	},
	{
		path:   "internal/screen",
		std:    []string{"net", "net/http", "os", "os/exec", "log", "log/slog"},
		reason: "control sequences: pure",
	},
	{
		path:   "internal/nearest",
		std:    []string{"net", "net/http", "time", "os", "os/exec", "log", "log/slog"},
		reason: "a leaf below policy: words in, a word out",
	},
	{
		path:   "internal/daemon/ship/...",
		ours:   []string{"internal/daemon/ship"},
		std:    []string{"os/exec", "log"},
		reason: "lines of a file, and who takes them: it knows no daemon",
	},
	{
		path:   "internal/daemon/...",
		ours:   []string{"policy", "event", "internal/linux/inotify"},
		std:    []string{"net/http/pprof"},
		reason: "one mechanism of the daemon each: it knows nothing of launch",
	},
	{
		path:   "internal/run/summary",
		ours:   []string{"policy", "policy/files", "event", "dnsfilter", "internal/cli", "internal/cli/explain", "internal/cli/policyflags"},
		std:    []string{"net/http", "os/exec"},
		reason: "text of what was recorded; dnsfilter says which addresses stand for names",
	},
	{
		path:   "internal/run/live",
		ours:   []string{"policy", "event", "internal/cli", "internal/cli/explain"},
		std:    []string{"net/http", "os", "os/exec", "log/slog"},
		reason: "text of what is being recorded",
	},
	{
		path:   "internal/run/journal",
		ours:   []string{"event", "event/flood", "internal/cli", "internal/run/feed"},
		std:    []string{"net", "net/http", "os/exec", "log/slog"},
		reason: "files of earlier runs: what is in them, others say",
	},
	{
		path:   "internal/run/notify",
		ours:   []string{"policy", "event", "internal/cli", "internal/cli/explain", "internal/cli/policyflags"},
		std:    []string{"net/http", "os/exec", "log/slog"},
		reason: "text of what is being recorded",
	},
	{
		path:   "internal/run/mcp",
		ours:   []string{"policy", "internal/cli/explain", "internal/run/why"},
		std:    []string{"net", "net/http", "os", "os/exec", "log/slog"},
		reason: "an agent's questions passed on to the gate: it opens nothing and allows nothing",
	},
	{
		path:   "internal/run/why",
		ours:   []string{"policy", "event", "internal/cli", "internal/cli/explain", "internal/cli/policyflags"},
		std:    []string{"os/exec", "log/slog"},
		reason: "asks the gate as any client does, or reads events: it knows no policy of its own",
	},
	{
		path:    "internal/run/...",
		ours:    []string{"policy", "policy/files", "event", "event/flood", "internal/cli", "internal/cli/policyflags", "internal/linux/foreground", "internal/screen"},
		outside: []string{"golang.org/x"},
		std:     []string{"net/http/pprof"},
		reason:  "one mechanism of a run each: it knows nothing of the daemon; internal/cli is below it",
	},
	{
		path:   "internal/linux/relay",
		ours:   []string{"internal/linux/foreground", "internal/screen"},
		std:    []string{"net", "net/http", "os/exec", "log", "log/slog"},
		reason: "bytes between two terminals, and the modes of one",
	},
	{
		path:    "internal/linux/...",
		outside: []string{"golang.org/x/net/bpf"},
		std:     []string{"net/http", "os/exec", "log", "log/slog"},
		reason:  "one mechanism of the system each: it knows neither binary",
	},
	{
		path:   "deploy/release",
		std:    []string{"net", "net/http", "log", "log/slog"},
		reason: "builds archives from a commit: what it needs of the programs it asks their binaries for, and it publishes nothing",
	},
	{
		path:    "bench/dns",
		ours:    []string{"bench/contest"},
		outside: []string{"golang.org/x/net/dns/dnsmessage", "golang.org/x/net/ipv4"},
		reason:  "a load of DNS questions, sent and read in batches",
	},
	{
		path:    "bench/denials",
		outside: []string{"golang.org/x/net/dns/dnsmessage"},
		reason:  "asks a real binary's DNS door",
	},
	{
		path:    "bench/attacks",
		ours:    []string{"bench/install", "bench/contest"},
		outside: []string{"golang.org/x/net/websocket"},
		reason:  "what a program inside can do, judged from outside; its origins speak what clients speak",
	},
	{
		path:   "bench/...",
		ours:   []string{"policy", "bench/install", "bench/contest"},
		reason: "drives real binaries over sockets; measuring inside the process measures something else",
	},
})
