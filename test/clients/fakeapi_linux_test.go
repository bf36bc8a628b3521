//go:build system

package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// agentProbe is what the scripted models ask the agents' shells to run: it
// shows that what an agent starts is behind the gate as well.
const agentProbe = `curl -sS -m 20 https://` + deniedHost + `/; echo denied=$?; curl -sS -m 20 https://` + webHost + `/hello; echo allowed=$?`

// routeModels adds scripted stand-ins for two model APIs. The first turn of a
// conversation asks for a tool with agentProbe, the next one repeats what the
// tool said.
func (w *world) routeModels() {
	w.mux.HandleFunc("POST "+claudeHost+"/v1/messages", serveClaude)
	w.mux.HandleFunc("POST "+openaiHost+"/v1/responses", serveCodex)
	for _, host := range []string{claudeHost, openaiHost, chatgptHost} {
		w.mux.HandleFunc(host+"/", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusNotFound)
			fmt.Fprint(rw, `{}`)
		})
	}
}

// object is a JSON object.
type object = map[string]any

// stream writes server-sent events, each at once.
type stream struct{ rw http.ResponseWriter }

func newStream(rw http.ResponseWriter) stream {
	rw.Header().Set("Content-Type", "text/event-stream")
	return stream{rw}
}

func (s stream) send(kind string, o object) {
	o["type"] = kind
	b, err := json.Marshal(o)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(s.rw, "event: %s\ndata: %s\n\n", kind, b)
	_ = http.NewResponseController(s.rw).Flush() // the client may be gone
}

// serveClaude speaks the streaming Messages API.
func serveClaude(rw http.ResponseWriter, r *http.Request) {
	var q struct {
		Model    string
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, 16<<20))
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	probe, repeat := agentProbe, func(result json.RawMessage) string { return "TOOL RESULT: " + string(result) }
	if bytes.Contains(body, []byte(picturePrompt)) {
		probe, repeat = pictureTool, pictureAnswer
	}
	var result json.RawMessage
	for _, m := range q.Messages {
		var blocks []struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // plain text
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				result = b.Content
			}
		}
	}
	hasShell := slices.ContainsFunc(q.Tools, func(t struct{ Name string }) bool { return t.Name == "Bash" })
	block := object{"type": "text", "text": ""}
	delta := object{"type": "text_delta", "text": repeat(result)}
	stop := "end_turn"
	if hasShell && result == nil {
		input, _ := json.Marshal(object{"command": probe, "description": "probe"}) // strings alone
		block = object{"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(input)}
		stop = "tool_use"
	}
	msg := object{
		"id": "msg_01", "type": "message", "role": "assistant", "model": q.Model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 10, "output_tokens": 1},
	}
	if !q.Stream {
		msg["content"], msg["stop_reason"] = []object{{"type": "text", "text": "ok"}}, "end_turn"
		_ = json.NewEncoder(rw).Encode(msg) // the client may be gone
		return
	}
	s := newStream(rw)
	s.send("message_start", object{"message": msg})
	s.send("content_block_start", object{"index": 0, "content_block": block})
	s.send("content_block_delta", object{"index": 0, "delta": delta})
	s.send("content_block_stop", object{"index": 0})
	s.send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	s.send("message_stop", object{})
}

// serveCodex speaks the streaming Responses API.
func serveCodex(rw http.ResponseWriter, r *http.Request) {
	var q struct {
		Tools []struct{ Name string }
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	var result json.RawMessage
	for _, i := range q.Input {
		if i.Type == "function_call_output" {
			result = i.Output
		}
	}
	item := object{"type": "message", "id": "msg_1", "role": "assistant", "content": []object{{"type": "output_text", "text": "TOOL RESULT: " + string(result)}}}
	if result == nil {
		for _, t := range q.Tools {
			args := object{"cmd": agentProbe}
			switch t.Name {
			case "exec_command":
			case "shell_command":
				args = object{"command": agentProbe}
			default:
				continue
			}
			text, _ := json.Marshal(args) // strings alone
			item = object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": t.Name, "arguments": string(text)}
			break
		}
	}
	s := newStream(rw)
	s.send("response.created", object{"response": object{"id": "resp_1"}})
	s.send("response.output_item.done", object{"output_index": 0, "item": item})
	s.send("response.completed", object{"response": object{"id": "resp_1", "usage": object{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": nil, "output_tokens_details": nil,
	}}})
}
