// Package otlp says events as OpenTelemetry's log records, and sends them over
// OTLP/HTTP in its JSON encoding.
//
//	c, err := otlp.New("https://collector.example.com:4318", otlp.Files{}, version)
//	err = c.Send(ctx, lines)
//
// Names of attributes are those of OpenTelemetry's semantic conventions (1.37) where
// they have one, else egressd. and the key of the line: the table is in docs/events.md.
// The line itself is the body, so that nothing is lost on the way.
//
// The encoding is our own. go.opentelemetry.io/otel's exporter (otlploghttp 0.15) keeps
// its own queue, drops what does not fit, and brings gRPC and protobuf for it; a line
// must be known to be taken before the next position is written down.
package otlp

import (
	"bytes"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"time"
)

// Severities, as OpenTelemetry numbers them.
const (
	severityInfo  = 9
	severityWarn  = 13
	severityError = 17
)

// value is an AnyValue: one of its members.
type value struct {
	String *string `json:"stringValue,omitempty"`
	Int    *string `json:"intValue,omitempty"` // int64 is a string in this encoding
	Bool   *bool   `json:"boolValue,omitempty"`
	Array  *values `json:"arrayValue,omitempty"`
}

type values struct {
	Values []value `json:"values"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type record struct {
	Time       string      `json:"timeUnixNano,omitempty"`
	Observed   string      `json:"observedTimeUnixNano"`
	Severity   int         `json:"severityNumber"`
	Text       string      `json:"severityText"`
	Body       value       `json:"body"`
	Attributes []attribute `json:"attributes"`
	Event      string      `json:"eventName,omitempty"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type scopeLogs struct {
	Scope   scope    `json:"scope"`
	Records []record `json:"logRecords"`
}

type resourceLogs struct {
	Resource resource    `json:"resource"`
	Scopes   []scopeLogs `json:"scopeLogs"`
}

// request is an ExportLogsServiceRequest.
type request struct {
	Logs []resourceLogs `json:"resourceLogs"`
}

// conventional are the names that OpenTelemetry has for keys of a line. Others get
// "egressd." in front.
var conventional = map[string]string{
	"host": "server.address", "port": "server.port", "method": "http.request.method", "path": "url.path",
	"session": "session.id", "proto": "network.transport", "error": "error.message", "exit_code": "process.exit.code",
}

// encode makes the request for lines.
func encode(lines [][]byte, version string, now time.Time) ([]byte, error) {
	var req request
	var last []byte
	for _, line := range lines {
		r, from := say(line, now)
		if req.Logs == nil || !bytes.Equal(from, last) {
			last = from
			req.Logs = append(req.Logs, resourceLogs{Resource: resourceOf(from), Scopes: []scopeLogs{{Scope: scope{"egressd", version}}}})
		}
		logs := &req.Logs[len(req.Logs)-1].Scopes[0]
		logs.Records = append(logs.Records, r)
	}
	return json.Marshal(req)
}

// say makes a record of a line, and reports its resource as the line has it. What is
// no JSON is sent as text.
func say(line []byte, now time.Time) (r record, from []byte) {
	text := string(bytes.ToValidUTF8(line, []byte("\ufffd")))
	r = record{Observed: nanos(now), Severity: severityWarn, Text: "WARN", Body: value{String: &text}, Attributes: []attribute{}}
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil {
		return r, nil
	}
	r.Severity, r.Text = severity(members)
	keys := make([]string, 0, len(members))
	for key := range members {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		raw := members[key]
		switch key {
		case "time":
			var at time.Time
			if json.Unmarshal(raw, &at) == nil {
				r.Time = nanos(at)
			}
		case "type":
			r.Event = text1(raw)
		case "resource":
			from = raw
		case "boot":
			r.Attributes = append(r.Attributes, words("log.record.uid", text1(raw)+"-"+string(members["seq"])))
		default:
			r.Attributes = append(r.Attributes, attributes(key, raw, r.Event, members)...)
		}
	}
	return r, from
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// severity is what a reader should look at first.
func severity(members map[string]json.RawMessage) (int, string) {
	switch text1(members["type"]) {
	case "record.resumed", "run.failed", "file.replaced":
		return severityError, "ERROR"
	case "policy.rejected", "session.refused", "file.refused":
		return severityWarn, "WARN"
	}
	if text1(members["decision"]) == "blocked" {
		return severityWarn, "WARN"
	}
	return severityInfo, "INFO"
}

// text1 is a string, or "".
func text1(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // another kind is no such word
	return s
}

// attributes says one member of a line.
func attributes(key string, raw json.RawMessage, event string, members map[string]json.RawMessage) []attribute {
	switch {
	case key == "addr":
		return endpoint("network.peer", text1(raw))
	case key == "client":
		return endpoint("client", text1(raw))
	case key == "host" && text1(members["type"]) == "dns.query":
		return []attribute{words("dns.question.name", text1(raw))}
	}
	name := conventional[key]
	if name == "" {
		name = "egressd." + key
	}
	if v, ok := valueOf(raw); ok {
		return []attribute{{name, v}}
	}
	return nil
}

// endpoint says an address with its port, or whatever else stands for one.
func endpoint(prefix, text string) []attribute {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return []attribute{words(prefix+".address", text)}
	}
	return []attribute{words(prefix+".address", host), {prefix + ".port", value{Int: &port}}}
}

func words(key, text string) attribute { return attribute{key, value{String: &text}} }

// valueOf says a JSON value; false: it is null.
func valueOf(raw json.RawMessage) (value, bool) {
	s := string(raw)
	switch raw[0] { // json.Unmarshal leaves nothing empty, and no space around it
	case '"':
		s = text1(raw)
	case 't', 'f':
		is := raw[0] == 't'
		return value{Bool: &is}, true
	case 'n':
		return value{}, false
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			break
		}
		list := values{Values: []value{}}
		for _, item := range items {
			text := string(item)
			if item[0] == '"' {
				text = text1(item)
			}
			list.Values = append(list.Values, value{String: &text})
		}
		return value{Array: &list}, true
	default:
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			return value{Int: &s}, true
		}
	}
	return value{String: &s}, true
}

// resourceOf says where egressd runs.
func resourceOf(raw json.RawMessage) resource {
	all := []attribute{words("service.name", "egressd")}
	var named map[string]string
	_ = json.Unmarshal(raw, &named) // none: a line of launch's
	keys := make([]string, 0, len(named))
	for key := range named {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if key == "service.name" {
			all = all[:0]
		}
	}
	for _, key := range keys {
		all = append(all, words(key, named[key]))
	}
	return resource{all}
}
