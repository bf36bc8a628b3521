package fence

// proxyRooms are the rooms of proxy, which name every package below it: what a
// part of it may know is what keeps it from letting a byte pass by itself.
var proxyRooms = []room{
	{
		path:   "proxy",
		ours:   []string{"policy", "policy/upstream", "policy/room", "event", "event/phase", "proxy/ca", "proxy/internal/admission", "proxy/internal/approval", "proxy/internal/denial", "proxy/internal/dial", "proxy/internal/drops", "proxy/internal/exit", "proxy/internal/flows", "proxy/internal/forward", "proxy/internal/http1", "proxy/internal/inbound", "proxy/internal/origins", "proxy/internal/override", "proxy/internal/peek", "proxy/internal/pool", "proxy/internal/relay", "proxy/internal/secret", "proxy/internal/socket", "proxy/internal/stack", "proxy/internal/wire", "internal/accept"},
		std:    []string{"os/exec"},
		reason: "resolution reaches the doors through their own interface; a door that knew a resolver or a sandbox could take its word instead of asking",
	},
	{
		path:   "proxy/ca",
		std:    []string{"net/http", "os/exec"},
		reason: "key material, no network",
	},
	{
		path:    "proxy/internal/forward",
		ours:    []string{"proxy/internal/http1", "proxy/internal/pool"},
		outside: []string{"github.com/elazarl/goproxy"},
		std:     []string{"os/exec", "log/slog"},
		reason:  "carries requests that were let pass: it knows no policy, no event and no Server, so that another forwarder can take its place",
	},
	{
		path:   "proxy/internal/origins",
		ours:   []string{"policy", "proxy/internal/forward"},
		std:    []string{"net", "os/exec", "log/slog", "context"},
		reason: "keeps connections apart by the policy they were dialled under: it decides nothing and opens none",
	},
	{
		path:   "proxy/internal/stack",
		std:    []string{"net", "os/exec", "log/slog", "context"},
		reason: "a goroutine's stack and nothing else",
	},
	{
		path:   "proxy/internal/override",
		ours:   []string{"policy"},
		std:    []string{"net", "os/exec", "log/slog", "context"},
		reason: "reads heads for the policy to judge: it decides nothing",
	},
	{
		path:   "proxy/internal/http1",
		std:    []string{"net/http", "os/exec", "log/slog"},
		reason: "reads a client's requests and plain-HTTP origins' responses: it must not share net/http's reading",
	},
	{
		path:   "proxy/internal/inbound",
		ours:   []string{"proxy/internal/http1", "proxy/internal/pool"},
		std:    []string{"os/exec", "log/slog"},
		reason: "reads requests by http1 and writes what the handler answers: it judges none, and opens no connection",
	},
	{
		path:    "proxy/internal/wire",
		outside: []string{"golang.org/x/crypto/cryptobyte"},
		std:     []string{"net", "net/http", "os/exec", "log/slog", "time"},
		reason:  "reads bytes that are there already: no connection, no clock",
	},
	{
		path:   "proxy/internal/relay",
		ours:   []string{"proxy/internal/pool"},
		std:    []string{"net/http", "os/exec", "log/slog", "context"},
		reason: "carries bytes that were let pass: it knows no policy, no event and no Server, so that another engine can take its place",
	},
	{
		path:   "proxy/internal/admission",
		std:    []string{"net", "net/http", "os/exec", "log/slog", "context"},
		reason: "counts connections: it knows no policy, no protocol and no connection",
	},
	{
		path:   "proxy/internal/pool",
		std:    []string{"net", "net/http", "os/exec", "log/slog", "context"},
		reason: "byte slices",
	},
	{
		path:   "proxy/internal/denial",
		ours:   []string{"policy"},
		std:    []string{"os/exec", "log/slog", "context"},
		reason: "words a decision that was taken: it knows no Server and no event, and decides nothing",
	},
	{
		path:   "proxy/internal/socket",
		std:    []string{"net/http", "os/exec", "log/slog", "context"},
		reason: "asks the system about connections and addresses: it knows no policy and no Server",
	},
	{
		path:   "proxy/internal/peek",
		ours:   []string{"proxy/internal/admission", "proxy/internal/pool", "proxy/internal/socket", "proxy/internal/wire"},
		std:    []string{"net/http", "os/exec", "log/slog", "context"},
		reason: "holds first bytes for those that judge them: it knows no policy and no Server",
	},
	{
		path:   "proxy/internal/dial",
		ours:   []string{"policy", "proxy/internal/socket"},
		std:    []string{"net/http", "os/exec", "log/slog"},
		reason: "tries addresses that were judged, by attempts that its caller makes: it opens no connection itself",
	},
	{
		path:   "proxy/internal/drops",
		ours:   []string{"event"},
		std:    []string{"net", "os/exec", "log/slog", "context"},
		reason: "counts; writing the event is the Server's",
	},
	{
		path:   "proxy/internal/exit",
		ours:   []string{"policy", "policy/upstream", "proxy/internal/dial", "proxy/internal/socket"},
		std:    []string{"os/exec", "log/slog"},
		reason: "the one place from which an allowed flow leaves: it knows no Server and no event, and asks its judge at every step",
	},
	{
		path:   "proxy/internal/flows",
		ours:   []string{"policy"},
		std:    []string{"net", "net/http", "os/exec", "log/slog", "context"},
		reason: "keeps flows for those that judge them again: it knows no Server and no connection, and decides nothing",
	},
	{
		path:   "proxy/internal/approval",
		ours:   []string{"policy"},
		std:    []string{"net", "net/http", "os/exec", "log/slog", "context", "time"},
		reason: "holds what a person approved, as policies: it knows no Server and asks nobody",
	},
	{
		path:   "proxy/internal/secret",
		ours:   []string{"policy"},
		std:    []string{"os/exec", "log/slog", "context"},
		reason: "changes header fields: it knows no Server, and reads no secret that it is not handed",
	},
}
