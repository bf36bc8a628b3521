// Package admin serves /healthz, /readyz and /metrics to probes and scrapers:
//
//	s := &admin.Server{Ready: ready, Metrics: metrics.Handler()}
//	err := s.Serve(ctx, ln)
//
// It is read-only and shows nothing about flows. Clients of the gate must not be
// able to reach it.
package admin
