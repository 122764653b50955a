/* Makes a server slower by as much as is asked for: LD_PRELOAD it. What a statement takes is the time
 * from what was received to the first byte that is sent: a client waits for it.
 *
 *   PLANT_SHARE=0.03        spends so much more of that time on the CPU
 *   PLANT_STALL_EVERY=5000  every so many statements of a session
 *   PLANT_STALL_MS=100      it sleeps for so long
 *   PLANT_WRITE_BYTES=4096  writes so many bytes to a file of its own, each statement
 *   PLANT_LENGTH_US=2000    is on the CPU until so much is over since it last answered, and the time
 *                           of a stall if it stalls: the rate of a session that asks without a
 *                           pause is known, whatever the way and the client take of it
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double share;
static long stall_every, stall_ms, write_bytes, length_ns;
static int file = -1;
static char block[65536];

__attribute__((constructor)) static void read_environment(void)
{
	const char *text;
	if ((text = getenv("PLANT_SHARE")))
		share = atof(text);
	if ((text = getenv("PLANT_STALL_EVERY")))
		stall_every = atol(text);
	if ((text = getenv("PLANT_STALL_MS")))
		stall_ms = atol(text);
	if ((text = getenv("PLANT_WRITE_BYTES")))
		write_bytes = atol(text) < (long)sizeof block ? atol(text) : (long)sizeof block;
	if ((text = getenv("PLANT_LENGTH_US")))
		length_ns = atol(text) * 1000;
}

static long now_ns(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000L + at.tv_nsec;
}

/* When this thread received its statement; 0 once it answers. When it last answered. */
static __thread long received_ns, answered_ns;
static __thread long statements, written;

/* A sleep ends late by as much; the rest of a stall is spent on the CPU. */
#define LATE_NS 100000L

static void rest(long ns)
{
	struct timespec time = { ns / 1000000000L, ns % 1000000000L };
	if (ns > 0)
		nanosleep(&time, NULL);
}

static void spin(long until)
{
	while (now_ns() < until)
		;
}

static void plant(void)
{
	long at = now_ns();
	long stall_ns = stall_every > 0 && ++statements % stall_every == 0 ? stall_ms * 1000000L : 0;
	if (length_ns) {
		/* A session that paused begins anew with what it asks next. */
		long paused_ns = received_ns - answered_ns;
		long since = paused_ns < length_ns ? answered_ns : received_ns;
		long until = since + length_ns + stall_ns;
		if (stall_ns)
			rest(stall_ns - LATE_NS);
		spin(until);
		answered_ns = now_ns();
	} else {
		spin(at + (long)(share * (double)(at - received_ns)));
		rest(stall_ns);
	}
	if (write_bytes > 0) {
		if (file < 0)
			file = open("planted.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (file >= 0 && pwrite(file, block, (size_t)write_bytes, written++ % 4096 * write_bytes) < 0)
			file = -1;
	}
}

ssize_t recv(int socket, void *into, size_t length, int flags)
{
	ssize_t got = syscall(SYS_recvfrom, socket, into, length, flags, NULL, NULL);
	if (got > 0)
		received_ns = now_ns();
	return got;
}

ssize_t send(int socket, const void *from, size_t length, int flags)
{
	if (received_ns)
		plant();
	received_ns = 0;
	return syscall(SYS_sendto, socket, from, length, flags, NULL, 0);
}
