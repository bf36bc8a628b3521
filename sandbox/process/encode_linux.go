package process

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
)

// Forms of what crosses the control socket and the second execve.
const (
	formJSON = 'j'
	formGob  = 'g'
)

// encode spells v, a pointer, so that decode gets every string back byte for
// byte. JSON is fast to start with, but replaces bytes that are not UTF-8, as
// argv and paths may hold: where it did, gob is used.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(body, []byte(`\ufffd`)) { // what json.Marshal writes for such bytes
		return append([]byte{formJSON}, body...), nil
	}
	var b bytes.Buffer
	b.WriteByte(formGob)
	err = gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func decode(data []byte, v any) error {
	if len(data) == 0 {
		return errors.New("an empty message")
	}
	switch form, body := data[0], data[1:]; form {
	case formJSON:
		return json.Unmarshal(body, v)
	case formGob:
		return gob.NewDecoder(bytes.NewReader(body)).Decode(v)
	}
	return errors.New("a message of an unknown form")
}
