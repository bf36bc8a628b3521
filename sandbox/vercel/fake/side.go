package fake

import (
	"encoding/json"
	"net/http"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// sidePath is the prefix of the double's own endpoints: faults and recorded
// requests. They need the token if the Server has one.
const sidePath = "/_double/"

// serveSide answers:
//
//	GET /_double/requests     what the API got, see Request
//	DELETE /_double/requests  forgets it
//	GET /_double/faults       what will go wrong, see Fault
//	POST /_double/faults      adds one
//	DELETE /_double/faults    removes them
func (s *Server) serveSide(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Token != "" && s.authorize(r) != nil {
		http.Error(w, "the token is missing or wrong", http.StatusForbidden)
		return
	}
	var err error
	switch r.Method + " " + strings.TrimPrefix(r.URL.Path, sidePath) {
	case "GET requests":
		err = reply.JSON(w, http.StatusOK, s.Requests())
	case "DELETE requests":
		s.ForgetRequests()
		err = reply.JSON(w, http.StatusOK, struct{}{})
	case "GET faults":
		err = reply.JSON(w, http.StatusOK, s.Faults())
	case "DELETE faults":
		s.ClearFaults()
		err = reply.JSON(w, http.StatusOK, struct{}{})
	case "POST faults":
		var f Fault
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, reply.MaxBodyBytes))
		dec.DisallowUnknownFields()
		if err = dec.Decode(&f); err == nil {
			err = s.Inject(f)
		}
		if err == nil {
			err = reply.JSON(w, http.StatusOK, struct{}{})
		}
	default:
		http.NotFound(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
