package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

// Identity is a runner's, as the plane knows it.
type Identity struct {
	RunnerID string `json:"runnerId"`
	Token    string `json:"runnerToken"`
}

// Claim is a run that this runner has got.
type Claim struct {
	RunID    string          `json:"runId"`
	Contract json.RawMessage `json:"contract"`
	Token    string          `json:"claimToken"`
	Events   []chain.Entry   `json:"events"`
	Secrets  []Secret        `json:"secrets"`
}

// Secret is one that was released to the run.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ErrSpent is that the claim's token has completed the run before: the receipt has
// arrived, or another one.
var ErrSpent = errors.New("the run is completed already")

// Enroll makes this runner known to the plane.
func (c *Client) Enroll(ctx context.Context, token, publicPEM, pool string) (Identity, error) {
	var who Identity
	_, err := c.post(ctx, "/v1/runners/enroll", map[string]string{"enrollToken": token, "publicKeyPem": publicPEM, "pool": pool}, &who, true)
	if err == nil && (who.RunnerID == "" || who.Token == "") {
		err = errors.New("the plane's answer names no runner")
	}
	return who, err
}

// Claim asks for a run; nil: there is none.
func (c *Client) Claim(ctx context.Context, runnerToken, pool string) (*Claim, error) {
	var answer struct {
		Empty bool `json:"empty"`
		Claim
	}
	if _, err := c.post(ctx, "/v1/claims", map[string]string{"runnerToken": runnerToken, "pool": pool}, &answer, false); err != nil || answer.Empty {
		return nil, err
	}
	if answer.RunID == "" || answer.Token == "" || len(answer.Contract) == 0 {
		return nil, errors.New("the plane's claim is not whole")
	}
	return &answer.Claim, nil
}

// Blob reads a blob and holds it against its hash.
func (c *Client) Blob(ctx context.Context, hash string) ([]byte, error) {
	data, _, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/blobs/" + hash, limit: maxBlob, again: true})
	if err == nil && canonical.Sum(data) != hash {
		err = fmt.Errorf("the plane's blob %s has another hash", hash)
	}
	return data, err
}

// PutBlob stores a blob.
func (c *Client) PutBlob(ctx context.Context, claimToken string, data []byte) error {
	got, _, err := c.do(ctx, request{
		method: http.MethodPost, path: "/v1/blobs", bearer: claimToken, body: data, kind: "application/octet-stream", limit: maxAnswer, again: true,
	})
	if err != nil {
		return err
	}
	var answer struct {
		Hash string `json:"hash"`
	}
	if err := json.Unmarshal(got, &answer); err != nil {
		return fmt.Errorf("the plane's answer to a blob: %w", err)
	}
	if want := canonical.Sum(data); answer.Hash != want {
		return fmt.Errorf("the plane has stored a blob as %q that is %s", answer.Hash, want)
	}
	return nil
}

// rejected finds the place at which a chain broke.
var rejected = regexp.MustCompile(`^event chain rejected at seq (\d+)\b`)

// Events adds entries to the chain of a run. An answer may be lost after they were
// added, and then they are sent again; the plane refuses them at the first place that it
// has nothing for, and the rest is sent from there. unsure says that some may have been
// sent before.
func (c *Client) Events(ctx context.Context, runID, claimToken string, entries []chain.Entry, unsure bool) error {
	for len(entries) > 0 {
		body := struct {
			Token  string        `json:"claimToken"`
			Events []chain.Entry `json:"events"`
		}{claimToken, entries}
		again, err := c.post(ctx, "/v1/runs/"+runID+"/events", body, nil, true)
		if err == nil {
			return nil
		}
		next, ok := wanted(err)
		if first := entries[0].Seq; !ok || !(unsure || again) || next <= first || next > first+len(entries) {
			return err
		}
		entries, unsure = entries[next-entries[0].Seq:], false
	}
	return nil
}

// wanted is the number of the event that a plane has not got yet, if err tells.
func wanted(err error) (seq int, ok bool) {
	no := (*Error)(nil)
	if !errors.As(err, &no) || no.Status != http.StatusBadRequest {
		return 0, false
	}
	m := rejected.FindStringSubmatch(no.Message)
	if m == nil {
		return 0, false
	}
	seq, err = strconv.Atoi(m[1])
	return seq, err == nil
}

// Complete ends a run and reports the receipt that the plane has signed as well. The
// token is good for one completion. The error is ErrSpent if it was good before: an
// answer was lost, or the plane refused an earlier receipt.
func (c *Client) Complete(ctx context.Context, runID, claimToken string, r format.Receipt) (format.Receipt, error) {
	body := struct {
		Token   string         `json:"claimToken"`
		Receipt format.Receipt `json:"receipt"`
	}{claimToken, r}
	var answer json.RawMessage
	_, err := c.post(ctx, "/v1/runs/"+runID+"/complete", body, &answer, true)
	if no := (*Error)(nil); errors.As(err, &no) && no.Status == http.StatusConflict {
		return r, fmt.Errorf("%w: %w", ErrSpent, err)
	}
	if err != nil {
		return r, err
	}
	var wrapped struct {
		Receipt *format.Receipt `json:"receipt"`
	}
	if err := json.Unmarshal(answer, &wrapped); err != nil {
		return r, err
	}
	if wrapped.Receipt != nil {
		return *wrapped.Receipt, nil
	}
	return r, json.Unmarshal(answer, &r)
}
