/* What a synchronous query over a unix socket costs at the least: one thread per connection, and for each query one send, one poll, one
 * recv, and a walk over the headers of the answer. Nothing is timed, recorded or checked but errors. The query is sysbench's prepared
 * point select by primary key over ids 1 to ROWS of the table sbtest1. The account must need no password.
 *
 *     cc -O2 -pthread -o raw_loop raw_loop.c
 *     raw_loop mysql|postgres SOCKET USER DATABASE CONNECTIONS SECONDS ROWS [OPERATIONS]
 *
 * OPERATIONS, per connection, end the loop instead of SECONDS. Prints the number of queries. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, STACK = 1 << 18 };

struct connection {
    pthread_t thread;
    int socket;
    uint64_t random;
    uint32_t statement;
    uint64_t done;
    size_t length;
    unsigned char answer[BUFFER];
};

static const char *user, *database;
static uint64_t row_count, most_operations;
static atomic_bool must_stop;
static pthread_barrier_t all_connected;
static int is_mysql;

static void fail(const char *what, const unsigned char *words, size_t length)
{
    fprintf(stderr, "raw_loop: %s: %.*s\n", what, (int)length, words ? (const char *)words : strerror(errno));
    exit(1);
}

static void send_all(struct connection *c, const void *bytes, size_t length)
{
    for (const unsigned char *at = bytes; length > 0;) {
        ssize_t sent = send(c->socket, at, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            fail("send", NULL, 64);
        at += sent;
        length -= (size_t)sent;
    }
}

/* Appends what comes next to the answer. A sleeper in poll is woken once per answer, one in recv twice. */
static void receive_more(struct connection *c)
{
    for (;;) {
        struct pollfd input = {.fd = c->socket, .events = POLLIN};
        if (poll(&input, 1, -1) < 0 && errno != EINTR)
            fail("poll", NULL, 64);
        if (c->length == BUFFER)
            fail("answer", (const unsigned char *)"too long", 8);
        ssize_t received = recv(c->socket, c->answer + c->length, BUFFER - c->length, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            fail("recv", NULL, 64);
        c->length += (size_t)received;
        return;
    }
}

/* MySQL: three bytes of length, a number, the payload. */

static uint32_t little(const unsigned char *at, int bytes)
{
    uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

/* Walks packets until `last` says that one is the last, with the count of those before it. */
static void mysql_walk(struct connection *c, int (*is_last)(const unsigned char *, size_t, int, int *))
{
    size_t at = 0;
    int count = 0, ends = 0;
    c->length = 0;
    for (;;) {
        while (c->length < at + 5 || c->length < at + 4 + little(c->answer + at, 3))
            receive_more(c);
        const unsigned char *payload = c->answer + at + 4;
        size_t length = little(c->answer + at, 3);
        if (payload[0] == 0xff)
            fail("the server", payload + 3, length - 3);
        at += 4 + length;
        if (is_last(payload, length, count++, &ends))
            return;
    }
}

static int is_any(const unsigned char *payload, size_t length, int count, int *ends)
{
    (void)payload, (void)length, (void)count, (void)ends;
    return 1;
}

/* One definition and an end, one row, an end. */
static int is_end_of_rows(const unsigned char *payload, size_t length, int count, int *ends)
{
    (void)count;
    return payload[0] == 0xfe && length < 9 && ++*ends == 2;
}

/* One placeholder with its end, one column with its end. */
static int is_end_of_prepare(const unsigned char *payload, size_t length, int count, int *ends)
{
    return count > 0 && is_end_of_rows(payload, length, count, ends);
}

static void mysql_send(struct connection *c, unsigned char number, const void *payload, size_t length)
{
    unsigned char packet[1024] = {(unsigned char)length, (unsigned char)(length >> 8), 0, number};
    memcpy(packet + 4, payload, length);
    send_all(c, packet, 4 + length);
}

static void mysql_log_in(struct connection *c)
{
    /* Long password, database, protocol 4.1, transactions, secure connection, authentication plugins. */
    static const uint32_t abilities = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000;
    unsigned char login[600] = {abilities & 0xff, abilities >> 8 & 0xff, abilities >> 16 & 0xff, 0, 0, 0, 0, 1, 45};
    size_t length = 32;
    mysql_walk(c, is_any);
    length += (size_t)sprintf((char *)login + length, "%s", user) + 1;
    length += 1; /* no password */
    length += (size_t)sprintf((char *)login + length, "%s", database) + 1;
    length += (size_t)sprintf((char *)login + length, "mysql_native_password") + 1;
    mysql_send(c, 1, login, length);
    mysql_walk(c, is_any);
    if (c->answer[4] == 0xfe) {
        mysql_send(c, c->answer[3] + 1, "", 0);
        mysql_walk(c, is_any);
    }
    static const char prepare[] = "\x16select c from sbtest1 where id = ?";
    mysql_send(c, 0, prepare, sizeof prepare - 1);
    mysql_walk(c, is_end_of_prepare);
    c->statement = little(c->answer + 5, 4);
}

static void mysql_query(struct connection *c, uint64_t id)
{
    /* Execute: statement, no cursor, one round, no NULL, a type, BIGINT, the value. */
    unsigned char request[26] = {22, 0, 0, 0, 0x17, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0};
    memcpy(request + 5, &c->statement, 4);
    memcpy(request + 18, &id, 8);
    send_all(c, request, sizeof request);
    mysql_walk(c, is_end_of_rows);
}

/* PostgreSQL: a letter, a length that counts itself, the body. */

static uint32_t big(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_big(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24), at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8), at[3] = (unsigned char)value;
}

/* Walks messages until the server is ready. */
static void postgres_walk(struct connection *c)
{
    size_t at = 0;
    c->length = 0;
    for (;;) {
        while (c->length < at + 5 || c->length < at + 1 + big(c->answer + at + 1))
            receive_more(c);
        unsigned char kind = c->answer[at];
        if (kind == 'E')
            fail("the server", c->answer + at + 5, big(c->answer + at + 1) - 4);
        at += 1 + big(c->answer + at + 1);
        if (kind == 'Z')
            return;
    }
}

static void postgres_log_in(struct connection *c)
{
    unsigned char message[600] = {0};
    int length = 8;
    put_big(message + 4, 3 << 16);
    length += sprintf((char *)message + length, "user%c%s%cdatabase%c%s%c", 0, user, 0, 0, database, 0) + 1;
    put_big(message, (uint32_t)length);
    send_all(c, message, (size_t)length);
    postgres_walk(c);
    static const char prepare[] = "P\0\0\0\x2cs\0select c from sbtest1 where id = $1\0\0\0S\0\0\0\x04";
    send_all(c, prepare, sizeof prepare - 1);
    postgres_walk(c);
}

static void postgres_query(struct connection *c, uint64_t id)
{
    /* Bind: no portal name, the statement, one binary parameter of 4 bytes, binary results. Execute. Sync. */
    unsigned char request[] = {'B', 0, 0, 0, 25, 0, 's', 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0, 1,
                               'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, 'S', 0, 0, 0, 4};
    put_big(request + 18, (uint32_t)id);
    send_all(c, request, sizeof request);
    postgres_walk(c);
}

static void *work(void *argument)
{
    struct connection *c = argument;
    pthread_barrier_wait(&all_connected);
    while (!atomic_load_explicit(&must_stop, memory_order_relaxed) && (most_operations == 0 || c->done < most_operations)) {
        c->random ^= c->random << 13, c->random ^= c->random >> 7, c->random ^= c->random << 17;
        (is_mysql ? mysql_query : postgres_query)(c, 1 + c->random % row_count);
        c->done++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 8 || (strcmp(argv[1], "mysql") != 0 && strcmp(argv[1], "postgres") != 0)) {
        fprintf(stderr, "usage: raw_loop mysql|postgres SOCKET USER DATABASE CONNECTIONS SECONDS ROWS [OPERATIONS]\n");
        return 2;
    }
    is_mysql = strcmp(argv[1], "mysql") == 0;
    user = argv[3], database = argv[4];
    unsigned connection_count = (unsigned)atoi(argv[5]);
    double seconds = atof(argv[6]);
    row_count = strtoull(argv[7], NULL, 10);
    most_operations = argc > 8 ? strtoull(argv[8], NULL, 10) : 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(argv[2]) >= sizeof address.sun_path || strlen(user) + strlen(database) > 400 || connection_count == 0 || row_count == 0)
        fail("arguments", (const unsigned char *)"out of range", 12);
    strcpy(address.sun_path, argv[2]);

    struct connection *connections = calloc(connection_count, sizeof *connections);
    pthread_attr_t small_stack;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, STACK);
    pthread_barrier_init(&all_connected, NULL, connection_count + 1);
    for (unsigned i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        c->random = 0x9e3779b97f4a7c15u * (i + 1);
        c->socket = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(c->socket, (struct sockaddr *)&address, sizeof address) != 0)
            fail("connect", NULL, 64);
        (is_mysql ? mysql_log_in : postgres_log_in)(c);
        if (pthread_create(&c->thread, &small_stack, work, c) != 0)
            fail("thread", NULL, 64);
    }
    pthread_barrier_wait(&all_connected);
    if (most_operations == 0) {
        usleep((useconds_t)(seconds * 1e6));
        must_stop = 1;
    }
    uint64_t done = 0;
    for (unsigned i = 0; i < connection_count; i++) {
        pthread_join(connections[i].thread, NULL);
        done += connections[i].done;
    }
    printf("queries: %llu\n", (unsigned long long)done);
    return 0;
}
