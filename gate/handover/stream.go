package handover

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"egressd/event"
)

// Errors of events that the launcher must record.
var (
	errGone   = errors.New("session: the launcher is gone")
	errNoRoom = errors.New("session: the launcher does not read its events")
	errNoAck  = errors.New("session: the launcher did not record the event in time")
	errUnkept = errors.New("session: the launcher could not record the event")
)

// stream sends the events of a handover to its launcher. It is the event.Sink of
// the gate: Emit of an allowed flow returns when the launcher has recorded it.
// Safe for concurrent use.
type stream struct {
	timeout time.Duration

	mu      sync.Mutex
	queue   []byte                 // frames that wait for an earlier write
	next    uint64                 // number of the newest event or question
	waiting map[uint64]chan answer // by number
	asking  int
	lost    uint64 // events that found no room
	silent  bool   // the launcher answers no more
	closed  bool
	wake    chan struct{} // holds one token when queue is not empty, or closed
}

// answer is the launcher's answer to an event or a question.
type answer struct{ yes, gone bool }

func newStream(timeout time.Duration) *stream {
	return &stream{timeout: timeout, waiting: make(map[uint64]chan answer), wake: make(chan struct{}, 1)}
}

// Emit implements event.Sink.
func (s *stream) Emit(e event.Event) error {
	body, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	n, reply, err := s.push(kindEvent, body, e.Allowed())
	if err != nil || reply == nil {
		return err
	}
	defer s.forget(n)
	limit := time.NewTimer(s.timeout)
	defer limit.Stop()
	select {
	case a := <-reply:
		switch {
		case a.gone:
			return errGone
		case !a.yes:
			return errUnkept
		}
		return nil
	case <-limit.C:
		return errNoAck
	}
}

// push queues a frame. Its answer arrives on reply, which is nil unless wanted.
func (s *stream) push(k kind, body []byte, wanted bool) (n uint64, reply chan answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.silent && wanted {
		return 0, nil, errGone
	}
	if len(s.queue) > 0 && len(s.queue)+len(body) > maxQueue {
		if k == kindEvent {
			s.lost++
		}
		return 0, nil, errNoRoom
	}
	s.next++
	s.queue = append(s.queue, frame(k, numbered(s.next, body))...)
	if wanted {
		reply = make(chan answer, 1)
		s.waiting[s.next] = reply
	}
	s.signal()
	return s.next, reply, nil
}

// cancel takes question n back.
func (s *stream) cancel(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.queue = append(s.queue, frame(kindCancel, numbered(n, nil))...)
		s.signal()
	}
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) forget(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, n)
}

// answered delivers an answer; one that nobody waits for is dropped.
func (s *stream) answered(n uint64, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reply := s.waiting[n]; reply != nil {
		delete(s.waiting, n)
		reply <- answer{yes: yes}
	}
}

// take waits for frames to send; more is false once the stream is closed and
// empty.
func (s *stream) take(spare []byte) (frames []byte, more bool) {
	for {
		s.mu.Lock()
		frames, s.queue = s.queue, spare[:0]
		closed := s.closed
		s.mu.Unlock()
		if len(frames) > 0 || closed {
			return frames, len(frames) > 0
		}
		spare = frames[:0]
		<-s.wake
	}
}

// hangUp ends every wait for an answer: none will come. Events still queue, since
// the launcher may read them.
func (s *stream) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
	for n, reply := range s.waiting {
		delete(s.waiting, n)
		reply <- answer{gone: true}
	}
}

// close accepts no more events; those in the queue may still be taken. It reports
// how many found no room.
func (s *stream) close() (lost uint64) {
	s.hangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signal()
	return s.lost
}

// ask sends a question and waits for its answer. Anything but a yes is a no.
func (s *stream) ask(ctx context.Context, q question) bool {
	body, err := json.Marshal(q)
	if err != nil || !s.startAsking() {
		return false
	}
	defer s.stopAsking()
	n, reply, err := s.push(kindAsk, body, true)
	if err != nil {
		return false
	}
	defer s.forget(n)
	select {
	case a := <-reply:
		return a.yes
	case <-ctx.Done():
		s.cancel(n)
		return false
	}
}

func (s *stream) startAsking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking >= maxQuestions {
		return false
	}
	s.asking++
	return true
}

func (s *stream) stopAsking() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking--
}
