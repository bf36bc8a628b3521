// Package api is a client of the REST API of Vercel Sandbox, of use on its own:
//
//	client := &api.Client{Token: token, TeamID: team, ProjectID: project}
//	defer client.Close()
//	made, err := client.Create(ctx, api.CreateRequest{Runtime: "node24", Timeout: api.MillisOf(time.Hour)})
//	...
//	ended, err := client.Run(ctx, made.Session.ID, api.CommandRequest{Command: "uname"}, nil, print)
//
// Only requests that are safe to repeat are repeated after a failure: a command
// is never started twice, and a stream is resumed, not begun again.
package api
