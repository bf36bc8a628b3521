package fake

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// routeDomain is the domain under which the hosted service publishes ports.
const routeDomain = ".vercel.run"

// maxRouteConns bounds the connections to one port at once.
const maxRouteConns = 256

// route is a port of a session that can be reached from outside: by a listener
// on this machine's loopback, and by its name at the double's own address.
type route struct {
	port      int
	subdomain string
	ln        net.Listener
	cancel    context.CancelFunc // ends its connections
}

func (rt *route) close() {
	_ = rt.ln.Close()
	rt.cancel()
}

// closeRoutes closes what leads to a session. s.mu is held.
func (ses *session) closeRoutes() {
	for _, rt := range ses.routes {
		rt.close()
	}
}

// setPorts makes ports the ports of a session. Routes of ports that stay are
// kept. s.mu is held.
func (s *Server) setPorts(ses *session, ports []int) error {
	have := map[int]*route{}
	for _, rt := range ses.routes {
		have[rt.port] = rt
	}
	ses.routes = nil
	for _, p := range ports {
		rt := have[p]
		delete(have, p)
		if rt == nil {
			var err error
			if rt, err = s.openRoute(ses, p); err != nil {
				return err
			}
		}
		ses.routes = append(ses.routes, rt)
	}
	for _, rt := range have {
		rt.close()
	}
	return nil
}

// openRoute listens for p. s.mu is held.
func (s *Server) openRoute(ses *session, p int) (*route, error) {
	if !s.enterLocked() {
		return nil, errSandboxStopped
	}
	ctx, cancel := context.WithCancel(s.ctx)
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		s.wg.Done()
		return nil, err
	}
	rt := &route{port: p, subdomain: subdomain(), ln: ln, cancel: cancel}
	go func() {
		defer s.wg.Done()
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
		rt.serve(ctx, ses)
	}()
	return rt, nil
}

// serve relays every connection until the listener is closed, and returns when
// every relay has ended.
func (rt *route) serve(ctx context.Context, ses *session) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxRouteConns)
	for {
		c, err := rt.ln.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-slots }()
				rt.relay(ctx, ses, c)
			})
		default:
			_ = c.Close() // over the bound
		}
	}
}

func (rt *route) relay(ctx context.Context, ses *session, outer net.Conn) {
	defer outer.Close()
	select {
	case <-ses.ready:
	case <-ctx.Done():
		return
	}
	if ses.m == nil {
		return // it did not start
	}
	inner, err := ses.m.Dial(ctx, uint16(rt.port)) // #nosec: validated
	if err != nil {
		return // nothing listens: the connection ends
	}
	defer inner.Close()
	defer context.AfterFunc(ctx, func() {
		_ = outer.Close()
		_ = inner.Close()
	})()
	var wg sync.WaitGroup
	wg.Go(func() { copyHalf(inner, outer) })
	copyHalf(outer, inner)
	wg.Wait()
}

// copyHalf copies one direction and passes its end on.
func copyHalf(dst, src net.Conn) {
	_, err := io.Copy(dst, src)
	if w, ok := dst.(*net.TCPConn); ok && err == nil {
		_ = w.CloseWrite() // the other direction ends it
		return
	}
	_ = errors.Join(dst.Close(), src.Close())
}

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

// routeTo returns the route of that subdomain; nil if there is none.
func (s *Server) routeTo(sub string) *url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.sessions {
		for _, rt := range ses.routes {
			if rt.subdomain == sub && ses.status == statusRunning {
				return &url.URL{Scheme: "http", Host: rt.ln.Addr().String()}
			}
		}
	}
	return nil
}
