package reply

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// Bounds of a page.
const (
	defaultPage = 20
	maxPage     = 50
)

// Pagination is what a list says about its pages.
type Pagination struct {
	Count int     `json:"count"`
	Next  *string `json:"next"` // the cursor of the next page; nil: there is none
}

// Page is what a list is asked for.
type Page struct {
	Limit     int
	Ascending bool
	after     string // the id of the last item of the page before; "": from the beginning
}

// ParsePage reads the page that the query of r asks for.
func ParsePage(r *http.Request) (Page, error) {
	q := r.URL.Query()
	p := Page{Limit: defaultPage}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return p, BadRequest("Invalid request: `limit` should be >= 1 and <= %d.", maxPage)
		}
		p.Limit = n
	}
	switch q.Get("sortOrder") {
	case "", "desc":
	case "asc":
		p.Ascending = true
	default:
		return p, BadRequest("Invalid request: `sortOrder` should be equal to one of the allowed values \"asc, desc\".")
	}
	if text := q.Get("cursor"); text != "" {
		data, err := base64.RawURLEncoding.DecodeString(text)
		id, ok := strings.CutPrefix(string(data), "after:")
		if err != nil || !ok {
			return p, BadRequest("Invalid request: `cursor` is invalid.")
		}
		p.after = id
	}
	return p, nil
}

// Cut reports the page of items, which are in ascending order, and where the
// next begins. id names an item for good.
func Cut[T any](p Page, items []T, id func(T) string) ([]T, Pagination) {
	if !p.Ascending {
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
	more := len(items) > p.Limit
	items = items[:min(len(items), p.Limit)]
	j := Pagination{Count: len(items)}
	if more {
		next := base64.RawURLEncoding.EncodeToString([]byte("after:" + id(items[len(items)-1])))
		j.Next = &next
	}
	return items, j
}
