// Package job holds what the test outside and the probe inside say to each
// other: a list of jobs in, a list of results out, as JSON over stdin and
// stdout.
package job

// Job is one attempt.
type Job struct {
	ID   string `json:"id"`
	Op   string `json:"op"`             // which attempt: see the probe's table
	Host string `json:"host,omitempty"` // as spelled, for the doors
	Port int    `json:"port,omitempty"`
	Via  string `json:"via,omitempty"` // address of the DNS server, of the socket, path, ...

	// Raw replaces what the door would be sent before the payload (a CONNECT
	// head, a DNS question's name bytes, ...). Empty: a well-formed one.
	Raw []byte `json:"raw,omitempty"`

	Token   string  `json:"token,omitempty"` // bytes that must not arrive anywhere
	QType   uint16  `json:"qtype,omitempty"`
	QClass  uint16  `json:"qclass,omitempty"`
	From    int     `json:"from,omitempty"`  // the client's own port; 0: any
	Delay   int     `json:"delay,omitempty"` // milliseconds between the first half of what is said and the rest
	Payload Payload `json:"payload"`
}

// Payload is what is said once a door has opened. The zero Payload says
// nothing and waits for the server to speak first.
type Payload struct {
	Kind   string `json:"kind,omitempty"` // tls, http, https, hello, raw
	SNI    string `json:"sni,omitempty"`
	Host   string `json:"host,omitempty"` // HTTP Host; "-" for none
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	Raw    []byte `json:"raw,omitempty"`
	Hello  Hello  `json:"hello"`
}

// Hello asks for a hand-made ClientHello (Kind hello).
type Hello struct {
	Names    []string `json:"names,omitempty"`     // server_name entries, in order
	NameType byte     `json:"name_type,omitempty"` // of the entries; 0 is host_name
	Twice    bool     `json:"twice,omitempty"`     // the server_name extension two times, one name each
	GREASE   bool     `json:"grease,omitempty"`    // encrypted_client_hello as browsers send it without a config
	PadBytes int      `json:"pad_bytes,omitempty"` // padding extension, put before server_name
	Records  int      `json:"records,omitempty"`   // split over that many TLS records
	Segments int      `json:"segments,omitempty"`  // written in that many pieces
	Truncate int      `json:"truncate,omitempty"`  // drop that many bytes from the end
	SSLv2    bool     `json:"sslv2,omitempty"`     // an SSLv2-compatible hello instead
	Version  uint16   `json:"version,omitempty"`   // legacy_version; zero is 0x0303
}

// Result is how one attempt went.
type Result struct {
	ID      string   `json:"id"`
	Reached bool     `json:"reached"` // a canary answered
	Done    bool     `json:"done"`    // the attempt's own action was carried out by the kernel
	Status  int      `json:"status"`  // HTTP status, SOCKS reply, DNS RCODE; -1 when there was none
	Text    string   `json:"text,omitempty"`
	Header  string   `json:"header,omitempty"` // Proxy-Status of an HTTP answer
	Local   string   `json:"local,omitempty"`  // the probe's own address: the client in the events
	Answers []string `json:"answers,omitempty"`
	Err     string   `json:"err,omitempty"`
}

// Tally is how the tries of one job went in a storm.
type Tally struct {
	ID      string         `json:"id"`
	Tries   int            `json:"tries"`
	Reached int            `json:"reached"`
	Status  map[int]int    `json:"status,omitempty"` // of the tries that did not reach
	Errs    map[string]int `json:"errs,omitempty"`   // likewise; at most a few different ones
}

// Marker is what every canary answers with.
const Marker = "CANARY-REACHED"
