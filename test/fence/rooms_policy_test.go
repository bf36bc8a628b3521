package fence

// policyRooms are the packages of the policy.
var policyRooms = []room{
	{
		path:    "policy",
		ours:    []string{"policy/files", "policy/upstream", "policy/internal/grammar", "policy/internal/intranet", "policy/internal/lists", "policy/internal/names", "policy/internal/pathmatch", "policy/internal/special", "policy/internal/suffix", "internal/nearest"},
		outside: []string{"go.yaml.in/yaml/v3"},
		std:     []string{"net", "net/http", "time", "log", "log/slog", "os", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "syscall"},
		reason:  "the one decision is pure: no clock, no network, no logging, so that it gives one answer for one question",
	},
	{
		path:   "policy/internal/grammar",
		ours:   []string{"policy/internal/names", "policy/internal/pathmatch", "policy/internal/suffix"},
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "one rule as text, pure: what it means, or what is wrong with it",
	},
	{
		path:   "policy/internal/lists",
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "a text and where its names stand, pure: it decides nothing",
	},
	{
		path:    "policy/internal/names",
		outside: []string{"golang.org/x/net/idna"},
		std:     []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason:  "one spelling of names, pure",
	},
	{
		path:   "policy/internal/pathmatch",
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "paths compared with paths, pure",
	},
	{
		path:   "policy/files",
		std:    []string{"net", "net/http", "time", "log", "log/slog", "os", "os/exec", "path/filepath", "io/fs", "syscall"},
		reason: "the decision about files judges names: links and what exists are the tiers' business",
	},
	{
		path:   "policy/room",
		ours:   []string{"policy"},
		std:    []string{"net", "net/http", "time", "log", "log/slog", "os", "os/exec", "syscall"},
		reason: "limits of a policy and numbers of a machine, pure: who reads the machine is elsewhere",
	},
	{
		path:   "policy/upstream",
		ours:   []string{"policy/internal/names"},
		std:    []string{"net/http", "time", "log", "log/slog", "os", "os/exec", "syscall"},
		reason: "where a proxy is, as text, pure: whoever dials it is elsewhere",
	},
	{
		path:   "policy/internal/intranet",
		ours:   []string{"policy/internal/special", "policy/internal/suffix"},
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "names and addresses compared, pure",
	},
	{
		path:    "policy/internal/suffix",
		outside: []string{"golang.org/x/net/publicsuffix"},
		std:     []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason:  "names compared with the list of public suffixes, pure",
	},
	{
		path:   "policy/internal/special",
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "addresses compared with the registries, pure",
	},
	{
		path:   "policy/presets",
		std:    []string{"net", "net/http", "time", "os", "log", "log/slog"},
		reason: "data files",
	},
}
