package api

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// ListOptions narrow and order a list.
type ListOptions struct {
	Name       string // of the sandbox, for sessions and snapshots
	NamePrefix string // for sandboxes; needs SortBy "name"
	SortBy     string // for sandboxes: createdAt, name, statusUpdatedAt, currentSnapshotId
	SortOrder  string // asc or desc; "": desc
	Status     Status // for sandboxes
	Tag        string // for sandboxes: "key:value"
	Limit      int    // of one page, 1 to 50; 0: the service's default
}

func (o ListOptions) query(project string) url.Values {
	limit := ""
	if o.Limit > 0 {
		limit = strconv.Itoa(o.Limit)
	}
	return url.Values{
		"project": {project}, "name": {o.Name}, "namePrefix": {o.NamePrefix}, "sortBy": {o.SortBy}, "sortOrder": {o.SortOrder},
		"status": {string(o.Status)}, "tags": {o.Tag}, "limit": {limit},
	}
}

// pagesMax bounds one list.
const pagesMax = 1000

// list asks for page after page, the query's cursor being that of the last one.
// read reports the items of a page and its cursor.
func list[T any](ctx context.Context, r call, cursor string, read func(ctx context.Context, r call) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		seen := map[string]bool{}
		for range pagesMax {
			items, next, err := read(ctx, r)
			if err != nil {
				yield(none, err)
				return
			}
			for _, it := range items {
				if !yield(it, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			if seen[next] {
				yield(none, &Error{Op: r.op, Message: "the same page comes again"})
				return
			}
			seen[next] = true
			r.query.Set(cursor, next)
		}
		yield(none, &Error{Op: r.op, Message: fmt.Sprintf("more than %d pages", pagesMax)})
	}
}

// List reports the sandboxes of the project. The error is the last of what it
// yields.
func (c *Client) List(ctx context.Context, o ListOptions) iter.Seq2[Sandbox, error] {
	q := o.query(c.project())
	q.Del("name")
	r := call{op: "list sandboxes", method: http.MethodGet, path: "/v2/sandboxes", query: q, repeat: always}
	return list(ctx, r, "cursor", func(ctx context.Context, r call) ([]Sandbox, string, error) {
		var p struct {
			page
			Sandboxes []Sandbox `json:"sandboxes"`
		}
		err := c.do(ctx, r, &p)
		return p.Sandboxes, p.next(), err
	})
}
