package fence

// sandboxRooms are the tiers, and what each of them is made of.
var sandboxRooms = []room{
	{
		path:   "sandbox",
		ours:   []string{"policy", "policy/files"},
		std:    []string{"net", "net/http"},
		reason: "what to run and what a backend is; how is each backend's business",
	},
	{
		path:    "sandbox/advisory",
		ours:    []string{"gate", "sandbox", "internal/linux/lookpath"},
		outside: []string{"golang.org/x/term"},
		std:     []string{"net/http"},
		reason:  "a gate on the loopback and a program beside it: no namespace, so it runs everywhere",
	},
	{
		path:   "sandbox/hermetic/control",
		ours:   []string{"hermetic/limits", "internal/linux/ipc"},
		std:    []string{"net/http", "os/exec"},
		reason: "what launcher and worker say to each other",
	},
	{
		path:   "sandbox/hermetic/inside",
		ours:   []string{"sandbox/hermetic/control", "hermetic", "hermetic/command", "internal/linux/seccomp"},
		std:    []string{"os/exec"},
		reason: "the worker: it confines itself, then runs the script; policy and doors stay outside",
	},
	{
		path:   "sandbox/hermetic",
		ours:   []string{"event", "gate", "sandbox", "sandbox/hermetic/control", "hermetic/limits", "internal/linux/..."},
		std:    []string{"net/http"},
		reason: "the tier outside: it joins engine and worker",
	},
	{
		path:   "sandbox/vercel/stage",
		ours:   []string{"hermetic/gitignore", "policy/files"},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "files out and files in: what comes back is judged without a network in sight, and git is not run on it",
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
		path:    "sandbox/vercel/api",
		ours:    []string{"sandbox/vercel/api/firewall", "sandbox/vercel/api/account"},
		outside: []string{"github.com/coder/websocket"},
		std:     []string{"os", "os/exec", "log"},
		reason:  "the client of the hosted API: of use on its own, so it knows no policy, no workspace and no environment",
	},
	{
		path:   "sandbox/vercel",
		ours:   []string{"policy", "policy/files", "event", "sandbox", "sandbox/vercel/...", "internal/linux/foreground", "internal/linux/procstat", "internal/linux/pty", "internal/linux/relay"},
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
		path:   "sandbox/vercel/inside",
		ours:   []string{"policy", "event"},
		std:    []string{"net", "net/http", "os/exec", "log", "log/slog"},
		reason: "what an untrusted machine prints is read without a network in sight, and the engine runs there, not here",
	},
	{
		path:   "sandbox/process/inside",
		ours:   []string{"netns/capture", "sandbox/process/control", "sandbox/process/spawn", "internal/linux/seccomp", "internal/linux/foreground", "internal/linux/inotify", "internal/linux/ipc", "internal/linux/kernelversion", "internal/linux/landlock", "internal/linux/lookpath", "internal/linux/mountinfo", "internal/linux/procstat", "internal/linux/unixdiag"},
		std:    []string{"net", "net/http", "encoding/json", "regexp", "text/template", "log/slog", "os/exec", "os/signal"},
		reason: "pid 1 of every run: it starts fast, and it holds nothing that the harness could want",
	},
	{
		path:   "sandbox/process/spawn",
		std:    []string{"fmt", "strings", "reflect", "time", "net", "context"},
		reason: "it is initialised before nearly everything, so that an init can be started that early",
	},
	{
		path:   "sandbox/process/control",
		ours:   []string{"internal/linux/ipc"},
		std:    []string{"net", "net/http", "encoding/json", "encoding/gob", "log/slog"},
		reason: "what a supervisor and pid 1 say to each other; pid 1 starts with what this imports",
	},
	{
		path:   "sandbox/process/places",
		ours:   []string{"policy/files", "sandbox/process/control", "internal/linux/mountinfo"},
		std:    []string{"net", "net/http", "time", "os/exec", "log/slog"},
		reason: "which mounts a gate of files needs here: it looks, and changes nothing",
	},
	{
		path:   "sandbox/process/latecomers",
		ours:   []string{"policy/files", "sandbox/process/places", "internal/linux/inotify"},
		std:    []string{"net", "net/http", "os/exec"},
		reason: "what appears under a protected name: it watches and moves, the gate decides",
	},
	{
		path:   "sandbox/process/...",
		ours:   []string{"policy", "policy/files", "event", "gate", "gate/handover", "sandbox", "internal/linux/...", "internal/size"},
		std:    []string{"net/http"},
		reason: "the one tier that joins engine and namespace",
	},
	{
		path:   "sandbox/vercel/fake/machine",
		ours:   []string{"gate", "sandbox", "sandbox/process", "internal/linux/lookpath", "internal/linux/pty"},
		std:    []string{"net/http", "os/exec"},
		reason: "a computer for the double of the hosted API: it knows nothing of the API",
	},
	{
		path:   "sandbox/vercel/fake/internal/reply",
		std:    []string{"os", "os/exec", "log", "log/slog"},
		reason: "the envelope of the API's answers: pure",
	},
	{
		path:   "sandbox/vercel/fake/internal/drives",
		ours:   []string{"sandbox/vercel/fake/machine", "sandbox/vercel/fake/internal/reply"},
		reason: "what outlives sandboxes and is mounted in them; who asks is the double's business",
	},
	{
		path:   "sandbox/vercel/fake/internal/output",
		std:    []string{"net", "net/http", "os/exec", "log", "log/slog"},
		reason: "a log with one writer and many readers, of use without the API",
	},
	{
		path:    "sandbox/vercel/fake/internal/terminal",
		ours:    []string{"internal/linux/pty", "sandbox/vercel/fake/machine"},
		outside: []string{"github.com/coder/websocket"},
		std:     []string{"net", "os/exec", "log", "log/slog"},
		reason:  "a terminal of a machine over a WebSocket: it knows nothing of sessions or tokens",
	},
	{
		path:   "sandbox/vercel/fake/internal/firewall",
		ours:   []string{"policy", "event", "proxy", "dnsfilter", "sandbox/process", "gate", "gate/handover", "proxy/ca", "sandbox/vercel/fake/internal/reply"},
		std:    []string{"os/exec", "log"},
		reason: "the network of one sandbox: it knows a policy and the engine, and nothing of sessions or routes",
	},
	{
		path:   "sandbox/vercel/fake",
		ours:   []string{"event", "dnsfilter", "sandbox/vercel/fake/machine", "sandbox/vercel/fake/internal/..."},
		reason: "the double of the hosted API: no edge to sandbox/vercel, so that a misreading in one shows in the other",
	},
}
