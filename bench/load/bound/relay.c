// The least that a forward proxy does, as the bound that the others are measured against: two threads,
// each with an epoll loop and a listening socket; CONNECT and absolute-form requests to literal IPv4
// addresses, splice once a flow is bulk. It decides, bounds and records nothing; whatever is not at
// 127.0.0.1 is answered 403. Usage: relay PORT
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 16384, BULK = 1 << 20 };

struct way { // one direction
	int from, to, pipe[2], ended, sent;
	size_t held; // in the pipe
};
struct flow {
	struct way up, down;
	int client, origin; // origin is 0 until the head is there
	size_t got;
	struct flow *next; // of those to be freed after this round
	int dead;
	char *head;
};

static __thread int loop;
static __thread struct flow *dead;
static __thread char piece[PIECE];
static int port;

static void watch(int fd, struct flow *f) {
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = f};
	epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e);
}

static void end(struct flow *f) {
	if (f->dead) return;
	f->dead = 1;
	close(f->client);
	if (f->origin) close(f->origin);
	struct way *ways[] = {&f->up, &f->down};
	for (int i = 0; i < 2; i++)
		if (ways[i]->pipe[1]) close(ways[i]->pipe[0]), close(ways[i]->pipe[1]);
	free(f->head), f->head = NULL;
	f->next = dead, dead = f;
}

static int pump(struct way *w) { // -1: the flow has failed
	for (;;) {
		if (w->held) {
			ssize_t n = splice(w->pipe[0], NULL, w->to, NULL, w->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
			if (n < 0) return errno == EAGAIN ? 0 : -1;
			w->held -= n;
			continue;
		}
		if (w->ended) {
			if (!w->sent) shutdown(w->to, SHUT_WR), w->sent = 1;
			return 0;
		}
		if (w->pipe[1]) {
			ssize_t n = splice(w->from, NULL, w->pipe[1], NULL, BULK, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
			if (n < 0) return errno == EAGAIN ? 0 : -1;
			w->held = n, w->ended = n == 0;
			continue;
		}
		ssize_t n = read(w->from, piece, PIECE);
		if (n < 0) return errno == EAGAIN ? 0 : -1;
		if (n == 0) { w->ended = 1; continue; }
		ssize_t k = write(w->to, piece, n);
		if (k < 0 && errno != EAGAIN) return -1;
		if (k < 0) k = 0;
		if (k < n || n == PIECE) {
			if (pipe2(w->pipe, O_NONBLOCK)) return -1;
			fcntl(w->pipe[1], F_SETPIPE_SZ, BULK);
			if (k < n && write(w->pipe[1], piece + k, n - k) != n - k) return -1;
			w->held = n - k;
		}
	}
}

static void refuse(struct flow *f) {
	static const char no[] = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	if (write(f->client, no, sizeof no - 1) < 0) {}
	end(f);
}

static void begin(struct flow *f) { // reads the head and connects
	if (!f->head) f->head = malloc(4096);
	ssize_t n = read(f->client, f->head + f->got, 4095 - f->got);
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN) end(f);
		return;
	}
	f->got += n, f->head[f->got] = 0;
	char *stop = strstr(f->head, "\r\n\r\n");
	if (!stop) { if (f->got == 4095) end(f); return; }
	int tunnel = !strncmp(f->head, "CONNECT ", 8);
	char *at = tunnel ? f->head + 8 : strstr(f->head, "http://");
	if (!at) { end(f); return; }
	if (!tunnel) at += 7;
	if (strncmp(at, "127.0.0.1:", 10)) { refuse(f); return; }
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(at + 10)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
	if (s < 0 || (connect(s, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS)) { if (s >= 0) close(s); end(f); return; }
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	f->origin = s;
	f->up.from = f->down.to = f->client, f->up.to = f->down.from = s;
	static const char yes[] = "HTTP/1.1 200 OK\r\n\r\n";
	char *rest = tunnel ? stop + 4 : f->head;
	size_t more = f->head + f->got - rest;
	if (tunnel && write(f->client, yes, sizeof yes - 1) < 0) { end(f); return; }
	if (more && write(s, rest, more) != (ssize_t)more) { end(f); return; } // a connection on the loopback is there at once
	free(f->head), f->head = NULL;
	watch(s, f);
}

static void *serve(void *unused) {
	int one = 1, ln = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(ln, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(ln, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
	if (bind(ln, (struct sockaddr *)&at, sizeof at) || listen(ln, 4096)) exit(1);
	loop = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN}, es[256];
	epoll_ctl(loop, EPOLL_CTL_ADD, ln, &e);
	for (;;) {
		int n = epoll_wait(loop, es, 256, -1);
		for (int i = 0; i < n; i++) {
			struct flow *f = es[i].data.ptr;
			if (!f) {
				int c = accept4(ln, NULL, NULL, SOCK_NONBLOCK);
				if (c < 0) continue;
				setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
				f = calloc(1, sizeof *f), f->client = c;
				watch(c, f);
				continue;
			}
			if (f->dead) continue;
			if (!f->origin) begin(f);
			if (f->dead || !f->origin) continue;
			if (pump(&f->up) || pump(&f->down) || (f->up.sent && f->down.sent)) end(f);
		}
		while (dead) { struct flow *f = dead; dead = f->next; free(f); }
	}
	return unused;
}

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	port = atoi(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	pthread_t other;
	pthread_create(&other, NULL, serve, NULL);
	serve(NULL);
}
