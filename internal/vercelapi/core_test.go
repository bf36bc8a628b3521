package vercelapi

import (
	"testing"
)

func TestCore(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"prj_x","name":"probe-a","persistent":false,"ports":[],"timeout":240000,"resources":{"vcpus":1},"tags":{"probe":"y"}}`)
	if out, code := d.run(sid, "echo out1; exit 3"); out != "out1\n" || code != 3 {
		t.Errorf("got %q, %d", out, code)
	}
	d.send("POST", "/v2/sandboxes/sessions/"+sid+"/stop", nil).want(200)
	d.send("POST", "/v2/sandboxes/sessions/"+sid+"/cmd", `{"command":"true"}`).want(410, "sandbox_stopped")
	d.send("DELETE", "/v2/sandboxes/probe-a?projectId=prj_x", nil).want(200)
	d.send("GET", "/v2/sandboxes/probe-a?projectId=prj_x", nil).want(404, "not_found")
}
