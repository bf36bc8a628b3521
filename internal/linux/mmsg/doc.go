// Package mmsg reads and writes UDP packets many at a time (recvmmsg(2), sendmmsg(2)):
//
//	s, err := mmsg.Open(conn) // conn stays the caller's
//	b := mmsg.NewBatch()
//	n, err := s.Read(b)
//	for i := range n {
//		b.SetReply(i, answer(b.Packet(i), b.Client(i), b.Buffer(i)))
//	}
//	s.Write(b)
//
// A reply leaves from the address that its packet was sent to, so that one socket may
// stand for many addresses. Nothing is allocated for a packet. No call waits in the
// kernel, whatever O_NONBLOCK says: another process may hold the same open file.
// A Socket is safe for concurrent use, a Batch is one goroutine's. A Conn is the same for
// a socket that is connected to one peer.
package mmsg

// Bounds of a [Batch].
const (
	Most        = 64   // packets
	PacketBytes = 4096 // of one packet; what is longer arrives cut to this
)
