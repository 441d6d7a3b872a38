// SPDX-License-Identifier: GPL-2.0
/*
 * What a host must not send. In no byte that a command does not use may it tell what its memory had
 * before.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "target.h"

/* Data is described by a list of descriptors, of which the only one is in the command. */
#define BY_DESCRIPTOR	0x40

#define DESCRIPTOR	24
#define KEYED		4

#define SMALLEST_BLOCK	512
#define LARGEST_BLOCK	4096

/* Whoever starts the target takes any word of this kind for a failure. */
void accuse(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "hostile_target: the host is wrong: ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

void check_zeroes(const char *what, const uint8_t *bytes, unsigned int at, unsigned int end)
{
	for (; at < end; at++)
		if (bytes[at])
			accuse("byte %u of %s is %#x", at, what, bytes[at]);
}

static unsigned int described(const uint8_t *sqe)
{
	const uint8_t *descriptor = sqe + DESCRIPTOR;

	return get(descriptor + 8, descriptor[15] >> 4 == KEYED ? 3 : 4);
}

void check_length(const uint8_t *sqe, unsigned int length)
{
	if (described(sqe) != length)
		accuse("%u bytes for command %#x, whose data has %u", described(sqe), sqe[0],
		       length);
}

/* The host may have been told another size than the target's own. */
static void check_blocks(const uint8_t *sqe)
{
	unsigned int count = get(sqe + 48, 2) + 1;
	unsigned int size = described(sqe) / count;

	if (described(sqe) % count || size < SMALLEST_BLOCK || size > LARGEST_BLOCK ||
	    size & (size - 1))
		accuse("%u bytes for command %#x, of %u blocks", described(sqe), sqe[0], count);
}

/* Bytes of a command that are zero. */
struct unused {
	uint8_t begin;
	uint8_t end;
};

/* A range that is empty ends each list. */
#define UNUSED	(const struct unused[])

/*
 * Which those are of a step, up to the end of the command, but for bytes 8 to 23, which are so of
 * all. OTHER is what a user may send, who says what he likes; one who asks for the controller may
 * have named a namespace.
 */
static const struct unused *const unused[STEPS] = {
	[CONNECT_ADMIN] = UNUSED { { 5, 24 }, { 40, 42 }, { 47, 48 }, { 52, 64 }, {} },
	[CONNECT_IO] = UNUSED { { 5, 24 }, { 40, 42 }, { 47, 48 }, { 52, 64 }, {} },
	[CAPABILITIES] = UNUSED { { 5, 39 }, { 41, 44 }, { 48, 64 }, {} },
	[STATUS] = UNUSED { { 5, 39 }, { 41, 44 }, { 48, 64 }, {} },
	[PROPERTY] = UNUSED { { 5, 39 }, { 41, 44 }, { 48, 64 }, {} },
	[CONFIGURE] = UNUSED { { 5, 39 }, { 41, 44 }, { 52, 64 }, {} },
	[CONTROLLER] = UNUSED { { 41, 64 }, {} },
	[LIST] = UNUSED { { 41, 64 }, {} },
	[NAMESPACE] = UNUSED { { 41, 64 }, {} },
	[DESCRIPTORS] = UNUSED { { 41, 64 }, {} },
	[LOG] = UNUSED { { 46, 64 }, {} },
	[ENTRIES] = UNUSED { { 46, 48 }, { 56, 64 }, {} },
	[CHANGED] = UNUSED { { 46, 64 }, {} },
	[EFFECTS] = UNUSED { { 46, 64 }, {} },
	[QUEUES] = UNUSED { { 4, 8 }, { 24, 39 }, { 41, 44 }, { 48, 64 }, {} },
	[EVENTS] = UNUSED { { 4, 8 }, { 24, 39 }, { 41, 44 }, { 48, 64 }, {} },
	[BEHAVIOR] = UNUSED { { 4, 8 }, { 41, 64 }, {} },
	[KEEP_ALIVE] = UNUSED { { 4, 8 }, { 24, 39 }, { 40, 64 }, {} },
	[EVENT] = UNUSED { { 4, 8 }, { 24, 39 }, { 40, 64 }, {} },
	[FLUSH] = UNUSED { { 24, 39 }, { 40, 64 }, {} },
	[READ] = UNUSED { { 50, 51 }, { 52, 64 }, {} },
	[WRITE] = UNUSED { { 50, 51 }, { 52, 64 }, {} },
	[TRAP_READ] = UNUSED { { 50, 51 }, { 52, 64 }, {} },
	[TRAP_WRITE] = UNUSED { { 50, 51 }, { 52, 64 }, {} },
	[DISCARD] = UNUSED { { 41, 44 }, { 45, 64 }, {} },
	[ZEROES] = UNUSED { { 24, 39 }, { 50, 51 }, { 52, 64 }, {} },
};

static void check_unused(const uint8_t *sqe, enum step step)
{
	const struct unused *range = unused[step];
	char what[64];

	snprintf(what, sizeof(what), "command %#x, which is %s,", sqe[0], step_names[step]);
	check_zeroes(what, sqe, 8, 24);
	for (; range && range->end; range++)
		check_zeroes(what, sqe, range->begin, range->end);
}

void check_capsule(const struct queue *queue, const uint8_t *sqe, unsigned int length)
{
	const uint8_t *descriptor = sqe + DESCRIPTOR;
	bool keyed = descriptor[15] >> 4 == KEYED;
	/* With a key the data is elsewhere. */
	unsigned int data = keyed ? 0 : described(sqe);
	enum step step = step_of(queue, sqe);

	if (length != SQE_SIZE + data)
		accuse("a capsule of %u bytes, with %u of data", length, data);
	if (sqe[1] != BY_DESCRIPTOR)
		accuse("the flags of command %#x are %#x", sqe[0], sqe[1]);
	if (!keyed)
		check_zeroes("a descriptor without a key", descriptor, 12, 15);
	check_unused(sqe, step);
	if (step == READ || step == WRITE)
		check_blocks(sqe);
}
