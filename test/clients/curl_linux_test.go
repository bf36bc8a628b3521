//go:build system

package clients

import "testing"

func TestCommandLineFetchers(t *testing.T) {
	hello, nowhere := url(webHost, "hello"), url(deniedHost, "hello")
	// A denied name: the proxy says 403 to CONNECT; captured, there is no such name.
	const curlRefusal = `CONNECT tunnel failed, response 403|Received HTTP code 403 from proxy after CONNECT|Could not resolve host`
	for _, c := range []client{
		{
			name: "curl https", needs: []string{"curl"}, rules: []string{webHost},
			argv: []string{"curl", "-sS", "--cacert", "{ca}", hello}, want: `hello from the origin`,
			denied: []string{"curl", "-sS", "--cacert", "{ca}", nowhere}, refusal: curlRefusal,
		},
		{
			name: "curl http", needs: []string{"curl"}, rules: []string{webHost},
			argv: []string{"curl", "-sS", "http://" + webHost + "/hello"}, want: `hello from the origin over HTTP/1.1`,
			denied: []string{"curl", "-sSf", "http://" + deniedHost + "/hello"}, refusal: `error: 403|Could not resolve host`,
		},
		{
			name: "curl http2", needs: []string{"curl"}, rules: []string{webHost}, env: []string{"CURL_CA_BUNDLE={ca}"},
			argv: []string{"curl", "-sS", "--http2", hello}, want: `over HTTP/2.0`,
		},
		{
			name: "curl download", needs: []string{"sh", "curl", "sha256sum"}, rules: []string{webHost}, env: []string{"CURL_CA_BUNDLE={ca}"},
			argv: []string{"sh", "-c", "curl -sS " + url(webHost, "big") + " | sha256sum"}, want: bigSum(),
		},
		{
			name: "curl upload", needs: []string{"sh", "curl"}, rules: []string{webHost}, env: []string{"CURL_CA_BUNDLE={ca}"},
			argv: []string{"sh", "-c", "curl -sS " + url(webHost, "big") + " | curl -sS -T - " + url(webHost, "digest")}, want: bigSum(),
		},
		{
			name: "curl upload http", needs: []string{"sh", "curl"}, rules: []string{webHost},
			argv: []string{"sh", "-c", "curl -sS http://" + webHost + "/big | curl -sS --data-binary @- -H 'Expect: 100-continue' http://" + webHost + "/digest"}, want: bigSum(),
		},
		{
			name: "curl keep-alive", needs: []string{"sh", "curl"}, rules: []string{webHost}, env: []string{"CURL_CA_BUNDLE={ca}"},
			argv: []string{"sh", "-c", "curl -sS --http1.1 " + url(webHost, "client") + " " + url(webHost, "client") + " | uniq | wc -l"}, want: `(?m)^1$`,
		},
		{
			name: "wget https", needs: []string{"wget"}, rules: []string{webHost},
			argv: []string{"wget", "-nv", "-O", "-", "--ca-certificate={ca}", hello}, want: `hello from the origin`,
			denied: []string{"wget", "-nv", "-O", "-", "--tries=1", "--ca-certificate={ca}", nowhere}, refusal: `Proxy tunneling failed: Blocked by egressd: denied.test:443: no rule allows this host; ask the user for --allow denied.test|unable to resolve host address|Name or service not known`,
		},
		{
			name: "wget http", needs: []string{"wget"}, rules: []string{webHost},
			argv: []string{"wget", "-nv", "-O", "-", "http://" + webHost + "/hello"}, want: `hello from the origin`,
			denied: []string{"wget", "-nv", "-O", "-", "--tries=1", "http://" + deniedHost + "/hello"}, refusal: `ERROR 403|unable to resolve host address`,
		},
		{
			// s_client knows proxies only by option.
			name: "openssl s_client", needs: []string{"sh", "openssl"}, rules: []string{webHost}, deaf: true,
			argv:   []string{"sh", "-c", `printf 'GET /hello HTTP/1.0\r\nHost: ` + webHost + `\r\n\r\n' | openssl s_client -quiet -verify_return_error -CAfile {ca} -servername ` + webHost + ` -connect ` + webHost + `:443`},
			want:   `hello from the origin over HTTP/1.0`,
			denied: []string{"sh", "-c", `openssl s_client -brief -CAfile {ca} -connect ` + deniedHost + `:443 </dev/null`}, refusal: `Name or service not known|BIO_lookup_ex`,
		},
	} {
		c.run(t)
	}
}
