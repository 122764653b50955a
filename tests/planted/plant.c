/* Makes a server slower by as much as is asked for: LD_PRELOAD it. What a statement takes is the time
 * from what was received to the first byte that is sent: a client waits for it.
 *
 *   PLANT_SHARE=0.03        spends so much more of that time on the CPU
 *   PLANT_STALL_EVERY=5000  every so many statements of a session
 *   PLANT_STALL_MS=100      it sleeps for so long
 *   PLANT_WRITE_BYTES=4096  writes so many bytes to a file of its own, each statement
 *   PLANT_LENGTH_US=2000    is on the CPU until so much of that time is over: what a statement takes
 *                           is known, if it takes less without
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

/* When this thread received its statement; 0 once it answers. */
static __thread long received_ns;
static __thread long statements;

static void plant(void)
{
	long at = now_ns(), until = at + (long)(share * (double)(at - received_ns));
	if (until < received_ns + length_ns)
		until = received_ns + length_ns;
	while (now_ns() < until)
		;
	statements++;
	if (stall_every > 0 && statements % stall_every == 0) {
		struct timespec rest = { stall_ms / 1000, stall_ms % 1000 * 1000000L };
		nanosleep(&rest, NULL);
	}
	if (write_bytes > 0) {
		if (file < 0)
			file = open("planted.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (file >= 0 && pwrite(file, block, (size_t)write_bytes, statements % 4096 * write_bytes) < 0)
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
