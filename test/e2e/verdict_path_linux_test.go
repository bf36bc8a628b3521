package e2e

import (
	"strings"

	"egressd/test/e2e/job"
)

// pathPolicy opens parts of hosts; TLS of these hosts is intercepted.
var pathPolicy = []string{
	"--allow", "GET https://api.example.com/v1/**",
	"--allow", "GET,POST https://api.example.com/pub/*",
	"--allow", "* https://*.any.example.com/open/**",
	"--allow", "whole.example.com", "--deny", "DELETE https://whole.example.com/**", "--deny", "* https://whole.example.com/admin/**",
}

func https(host, method, path string) job.Payload {
	return job.Payload{Kind: "https", SNI: host, Method: method, Path: path}
}

func pathGroup() group {
	return group{name: "methods and paths", flags: pathPolicy, env: trustWorld, rows: pathRows()}
}

// trustWorld makes the gate trust the origins' certificates.
func trustWorld() []string { return []string{"SSL_CERT_FILE=" + env.world.origins.caFile} }

func pathRows() []row {
	const api, whole = "api.example.com", "whole.example.com"
	var rows []row
	add := func(w want, host, method, path string, reason ...string) {
		r := row{name: method + " " + host + path, host: host, port: 443, say: https(host, method, path), want: w, doors: "cs4d"}
		r.reason = strings.Join(reason, "")
		rows = append(rows, r)
	}
	add(allow, api, "GET", "/v1")
	add(allow, api, "GET", "/v1/")
	add(allow, api, "GET", "/v1/a/b/c")
	add(allow, api, "GET", "/v1/a?x=/../../")
	add(allow, api, "GET", "/v1/a%2Fb")
	add(allow, api, "GET", "/v1/%41")
	add(allow, api, "GET", "/pub/x")
	add(allow, api, "POST", "/pub/x")
	add(allow, "x.any.example.com", "DELETE", "/open/x")
	add(allow, whole, "GET", "/anything")
	add(allow, whole, "POST", "/anything")
	add(cut, api, "GET", "/")
	add(cut, api, "GET", "/v2")
	add(cut, api, "GET", "/v1x")
	add(cut, api, "GET", "/V1/a")
	add(cut, api, "GET", "//v1/a")
	add(cut, api, "POST", "/v1/a")
	add(cut, api, "HEAD", "/v1/a")
	add(cut, api, "get", "/v1/a")
	add(cut, api, "PUT", "/pub/x")
	add(cut, api, "GET", "/pub/")
	add(cut, api, "GET", "/pub/x/y")
	add(cut, api, "GET", "/v1/../v2")
	add(cut, api, "GET", "/v1/%2e%2e/v2")
	add(cut, api, "GET", "/v1/%252e%252e/v2")
	add(cut, api, "GET", "/v1/..%2fv2")
	add(cut, api, "GET", "/v1/..;x/v2")
	add(cut, api, "GET", "/v1/.%2e/v2")
	add(cut, api, "GET", "/v1\\..\\v2")
	add(cut, api, "GET", "/v1/%5c..%5cv2")
	add(cut, api, "GET", "/v1/%00")
	add(cut, api, "GET", "/v1/%zz")
	add(cut, api, "GET", "v1/a")
	add(cut, "x.any.example.com", "GET", "/closed")
	add(cut, whole, "DELETE", "/anything")
	add(cut, whole, "GET", "/admin/x")
	add(cut, whole, "GET", "//admin/x")
	add(cut, whole, "GET", "/admin%2Fx")
	add(cut, whole, "GET", "/%61dmin/x")
	more := func(name string, r row) {
		r.name, r.doors = name, "cs4d"
		rows = append(rows, r)
	}
	more("another Host inside the intercepted TLS", row{host: api, port: 443, want: cut, say: job.Payload{Kind: "https", SNI: api, Host: "evil.example.org", Path: "/v1/x"}})
	more("another SNI towards an intercepted host", row{host: api, port: 443, want: cut, say: https("evil.example.org", "GET", "/v1/x")})
	more("an absolute path for another host", row{host: api, port: 443, want: cut, say: https(api, "GET", "https://evil.example.org/v1/x")})
	more("bytes towards an intercepted host", row{host: api, port: 443, want: cut, say: raw("EXFIL\n")})
	more("the same host, port 80", row{host: api, port: 80, want: cut, say: httpFor(api)})
	return rows
}
