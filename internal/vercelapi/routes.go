package vercelapi

import (
	"net/http"
	"net/http/httputil"
	"net/url"
)

// routeDomain is where the hosted service shows ports of sandboxes.
const routeDomain = ".vercel.run"

// proxyTo passes a request on to the server behind a route.
func (s *Server) proxyTo(w http.ResponseWriter, r *http.Request, sub string) {
	to := s.routeTo(sub)
	if to == nil {
		http.Error(w, "The sandbox is not listening.", http.StatusNotFound)
		return
	}
	p := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(to)
			pr.Out.Host = r.Host
			pr.SetXForwarded()
		},
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: nil},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "The sandbox is not listening.", http.StatusBadGateway)
		},
	}
	p.ServeHTTP(w, r)
}

// routeTo reports where the route of that subdomain leads; nil: nowhere.
func (s *Server) routeTo(sub string) *url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.sessions {
		for _, rt := range ses.routes {
			if rt.subdomain == sub && ses.status == statusRunning && rt.addr.IsValid() {
				return &url.URL{Scheme: "http", Host: rt.addr.String()}
			}
		}
	}
	return nil
}
