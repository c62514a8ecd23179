/* The provider of the benchmarks: fixed answers, from one thread.

   provider PORT [EVENTS [PACE_US]]

   A request that contains `bench-paced` gets a stream with an event every PACE_US microseconds, one with
   `bench-burst` a stream as fast as possible, any other one whole reply. Each event is one write, and streams take
   turns. A stream has EVENTS tokens; the text of each is ` @NNNTTTTTTTTTTTT`: its number in decimal digits, and in
   hexadecimal ones when it was sent, in nanoseconds of the monotonic clock. */
#include "common.h"

#define ID "\"id\":\"chatcmpl-3f6d0c9be7a14e0f8d52\""
#define NAMED ",\"created\":1700000000,\"model\":\"bench\""
#define CHUNK "data: {" ID ",\"object\":\"chat.completion.chunk\"" NAMED ",\"choices\":[{\"index\":0,"
#define REST ",\"logprobs\":null,\"finish_reason\":"
#define SENTENCE "A relay takes what it is given and hands it on; an interpreter must also know both languages."
#define REPLY                                                                                                    \
    "{" ID ",\"object\":\"chat.completion\"" NAMED ",\"choices\":[{\"index\":0,\"message\":{\"role\":"           \
    "\"assistant\",\"content\":\"" SENTENCE " " SENTENCE " " SENTENCE "\",\"refusal\":null},\"logprobs\":null,"  \
    "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":60,\"total_tokens\":960}}"
#define ABOUT "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}],\"status\":\"ok\"}"
#define STREAM_HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
#define PASSES 16 /* over the streams that are due, before new requests are looked for */

typedef struct connection {
    int fd, epoll, number; /* number: the next event of a stream, -1 without one */
    uint32_t watched;
    uint64_t pace, due;
    buffer in, out;
    struct connection *next; /* of the connections with a stream */
} connection;

static int events = 200;
static uint64_t pace = 5000000;
static connection *streaming;

static void append_chunk(buffer *out, const char *text, int length) {
    char size[24];
    append(out, size, (size_t)snprintf(size, sizeof size, "%x\r\n", (unsigned)length));
    append(out, text, (size_t)length);
    append(out, "\r\n", 2);
}

static void append_event(buffer *out, int number, uint64_t now) {
    char text[400];
    int length;
    if (number == 0) {
        const char *begin = "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}" REST "null}]}\n\n";
        length = snprintf(text, sizeof text, CHUNK "%s", begin);
        append_chunk(out, text, length);
    }
    unsigned long long sent = now & TIME_MASK;
    const char *format = CHUNK "\"delta\":{\"content\":\" @%03d%012llx\"}" REST "null}]}\n\n";
    length = snprintf(text, sizeof text, format, number, sent);
    append_chunk(out, text, length);
    if (number + 1 == events) {
        length = snprintf(text, sizeof text, CHUNK "\"delta\":{}" REST "\"stop\"}]}\n\n");
        append_chunk(out, text, length);
        append_chunk(out, "data: [DONE]\n\n", 14);
        append(out, "0\r\n\r\n", 5);
    }
}

static void append_whole(buffer *out, const char *body) {
    char head[120];
    const char *format = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n";
    append(out, head, (size_t)snprintf(head, sizeof head, format, strlen(body)));
    append(out, body, strlen(body));
}

static void flush(connection *c) {
    size_t sent = 0;
    while (sent < c->out.length) {
        ssize_t count = send(c->fd, c->out.data + sent, c->out.length - sent, MSG_NOSIGNAL);
        if (count < 0) break;
        sent += (size_t)count;
    }
    drop(&c->out, sent);
    uint32_t wanted = c->out.length ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (wanted != c->watched) watch(c->epoll, EPOLL_CTL_MOD, c->fd, c->watched = wanted, c);
}

/* Begin a stream. The phases of paced ones are evenly distributed: streams in the same phase cost less, by chance. */
static void begin_stream(connection *c, uint64_t pace) {
    static unsigned count;
    double phase = (double)count++ * 0.618034;
    append(&c->out, STREAM_HEAD, sizeof STREAM_HEAD - 1);
    c->number = 0;
    c->pace = pace;
    c->due = now_ns() + (uint64_t)((phase - (double)(unsigned)phase) * (double)pace);
    c->next = streaming;
    streaming = c;
}

static void answer(connection *c, size_t head, size_t length) {
    const char *request = c->in.data, *model = memmem(request, head + length, "bench-", 6);
    size_t rest = model ? head + length - (size_t)(model - request) : 0;
    if (rest >= 11 && !memcmp(model, "bench-paced", 11)) begin_stream(c, pace);
    else if (rest >= 11 && !memcmp(model, "bench-burst", 11)) begin_stream(c, 0);
    else append_whole(&c->out, *request == 'G' ? ABOUT : REPLY);
    drop(&c->in, head + length);
    flush(c);
}

static void close_connection(connection *c) {
    connection **link = &streaming;
    while (*link && *link != c) link = &(*link)->next;
    if (*link) *link = c->next;
    close(c->fd);
    free(c->in.data);
    free(c->out.data);
    free(c);
}

/* Return 0 if the connection has ended. */
static int receive(connection *c) {
    reserve(&c->in, 65536);
    ssize_t count = recv(c->fd, c->in.data + c->in.length, c->in.capacity - c->in.length, 0);
    if (count <= 0) return 0;
    c->in.length += (size_t)count;
    size_t head;
    while (c->number < 0 && (head = find_head(c->in.data, c->in.length))) {
        const char *value = find_header(c->in.data, head, "content-length");
        size_t length = value ? strtoul(value, NULL, 10) : 0;
        if (c->in.length < head + length) break;
        answer(c, head, length);
    }
    return 1;
}

/* Send the events that are due, and return when the next one is; 0 without any. */
static uint64_t send_due(void) {
    uint64_t next = 0;
    for (connection **link = &streaming; *link;) {
        connection *c = *link;
        uint64_t now = now_ns();
        if (c->due <= now) {
            append_event(&c->out, c->number++, now);
            flush(c);
            c->due += c->pace;
            if (c->number == events) {
                c->number = -1;
                *link = c->next;
                continue;
            }
        }
        if (!next || c->due < next) next = c->due;
        link = &c->next;
    }
    return next;
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = local_address(port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024)) die("listen");
    return fd;
}

static void accept_connection(int epoll, int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) return;
    set_no_delay(fd);
    connection *c = calloc(1, sizeof *c);
    if (!c) die("calloc");
    c->fd = fd, c->epoll = epoll, c->number = -1, c->watched = EPOLLIN;
    watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, c);
}

int main(int count, char **words) {
    if (count < 2) return fprintf(stderr, "provider PORT [EVENTS [PACE_US]]\n"), 2;
    if (count > 2) events = atoi(words[2]);
    if (count > 3) pace = strtoull(words[3], NULL, 10) * 1000;
    int epoll = epoll_create1(0), listener = listen_on(atoi(words[1])), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
    watch(epoll, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
    struct epoll_event found[256];
    uint64_t due = 0;
    for (;;) {
        int ready = epoll_wait(epoll, found, 256, due && due <= now_ns() ? 0 : -1);
        for (int i = 0; i < ready; i++) {
            connection *c = found[i].data.ptr;
            uint64_t expired;
            if (found[i].data.ptr == &listener) {
                accept_connection(epoll, listener);
            } else if (found[i].data.ptr == &timer) {
                if (read(timer, &expired, sizeof expired) < 0) die("timer");
            } else if (found[i].events & ~(uint32_t)EPOLLOUT && !receive(c)) {
                close_connection(c);
            } else if (found[i].events & EPOLLOUT) {
                flush(c);
            }
        }
        due = send_due();
        for (int more = 0; more < PASSES && due && due <= now_ns(); more++) due = send_due();
        if (due > now_ns()) set_timer(timer, due);
    }
}
