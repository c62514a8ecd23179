/* What the load generator and the provider share: time, buffers, sockets. */
#ifndef COMMON_H
#define COMMON_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define TIME_MASK 0xffffffffffffULL /* a token carries 48 bits of nanoseconds, which repeat after three days */

typedef struct {
    char *data;
    size_t length, capacity;
} buffer;

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static inline void reserve(buffer *b, size_t more) {
    if (b->length + more <= b->capacity) return;
    b->capacity = (b->length + more) * 2;
    b->data = realloc(b->data, b->capacity);
    if (!b->data) die("realloc");
}

static inline void append(buffer *b, const void *data, size_t length) {
    reserve(b, length);
    memcpy(b->data + b->length, data, length);
    b->length += length;
}

/* Remove bytes from the start. */
static inline void drop(buffer *b, size_t count) {
    b->length -= count;
    if (b->length) memmove(b->data, b->data + count, b->length);
}

static inline struct sockaddr_in local_address(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline void set_no_delay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Return the length of a head with its empty line, 0 if it is not complete. */
static inline size_t find_head(const char *data, size_t length) {
    const char *end = length ? memmem(data, length, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - data) + 4 : 0;
}

/* Return the value of a header, NULL if the head lacks it. */
static inline const char *find_header(const char *head, size_t length, const char *name) {
    size_t size = strlen(name);
    const char *end = head + length, *line = memchr(head, '\n', length);
    for (; line && line + 1 + size < end; line = memchr(line + 1, '\n', (size_t)(end - line - 1)))
        if (!strncasecmp(line + 1, name, size) && line[1 + size] == ':') return line + 2 + size;
    return NULL;
}

/* Let the timer go off at a time of the monotonic clock. */
static inline void set_timer(int timer, uint64_t due) {
    struct itimerspec when = {.it_value = {(time_t)(due / 1000000000ULL), (long)(due % 1000000000ULL)}};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL)) die("timerfd_settime");
}

static inline void watch(int epoll, int operation, int fd, uint32_t events, void *what) {
    struct epoll_event event = {.events = events, .data = {.ptr = what}};
    if (epoll_ctl(epoll, operation, fd, &event)) die("epoll_ctl");
}

#endif
