package fake

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// Bounds of a page.
const (
	defaultPage = 20
	maxPage     = 50
)

// page is what a list is asked for.
type page struct {
	limit     int
	ascending bool
	after     string // the id of the last item of the page before; "": from the beginning
}

func parsePage(r *http.Request) (page, error) {
	q := r.URL.Query()
	p := page{limit: defaultPage}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return p, reply.BadRequest("Invalid request: `limit` should be >= 1 and <= %d.", maxPage)
		}
		p.limit = n
	}
	switch q.Get("sortOrder") {
	case "", "desc":
	case "asc":
		p.ascending = true
	default:
		return p, reply.BadRequest("Invalid request: `sortOrder` should be equal to one of the allowed values \"asc, desc\".")
	}
	if text := q.Get("cursor"); text != "" {
		data, err := base64.RawURLEncoding.DecodeString(text)
		id, ok := strings.CutPrefix(string(data), "after:")
		if err != nil || !ok {
			return p, reply.BadRequest("Invalid request: `cursor` is invalid.")
		}
		p.after = id
	}
	return p, nil
}

// cut reports the page of items, which are in ascending order, and where the
// next begins. id names an item for good.
func cut[T any](p page, items []T, id func(T) string) ([]T, paginationJSON) {
	if !p.ascending {
		turned := make([]T, 0, len(items))
		for i := len(items) - 1; i >= 0; i-- {
			turned = append(turned, items[i])
		}
		items = turned
	}
	if p.after != "" {
		rest := []T{}
		for i, item := range items {
			if id(item) == p.after {
				rest = items[i+1:]
				break
			}
		}
		items = rest
	}
	more := len(items) > p.limit
	items = items[:min(len(items), p.limit)]
	j := paginationJSON{Count: len(items)}
	if more {
		j.Next = ptr(base64.RawURLEncoding.EncodeToString([]byte("after:" + id(items[len(items)-1]))))
	}
	return items, j
}
