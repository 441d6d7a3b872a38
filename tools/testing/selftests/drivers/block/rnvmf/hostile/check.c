// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of the host's commands. Unused bytes must be zero, because others would leak memory
 * contents of the host.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "target.h"

/* PSDT in the flags of a command: SGL, with the descriptor in the command. */
#define BY_DESCRIPTOR	0x40

#define DESCRIPTOR	24
#define KEYED		4

#define SMALLEST_BLOCK	512
#define LARGEST_BLOCK	4096

/* The test fails if the target prints anything on standard error. */
void accuse(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "hostile_target: protocol violation by the host: ");
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
		accuse("SGL length %u of command %#x, expected %u", described(sqe), sqe[0],
		       length);
}

/* A twist may have reported another block size than the target's, so any valid size is accepted. */
static void check_blocks(const uint8_t *sqe)
{
	unsigned int count = get(sqe + 48, 2) + 1;
	unsigned int size = described(sqe) / count;

	if (described(sqe) % count || size < SMALLEST_BLOCK || size > LARGEST_BLOCK ||
	    size & (size - 1))
		accuse("SGL length %u of command %#x with %u blocks", described(sqe), sqe[0], count);
}

/* PRINFO.PRACT in byte 51. */
#define PROTECTION_ACTION	(1 << 5)

/* The reference tag of types 1 and 2 is the lower half of the block's number. */
static void check_protection(const uint8_t *sqe)
{
	uint32_t tag = protection == 1 || protection == 2 ? get(sqe + 40, 4) : 0;

	if (!(sqe[51] & PROTECTION_ACTION) != !protection)
		accuse("byte 51 of command %#x is %#x", sqe[0], sqe[51]);
	if (get(sqe + 56, 4) != tag)
		accuse("reference tag of command %#x is not %#x", sqe[0], tag);
}

/* A range of bytes that must be zero. */
struct unused {
	uint8_t begin;
	uint8_t end;
};

/* Each list ends with an empty range. */
#define UNUSED	(const struct unused[])

/*
 * The unused bytes of each step, apart from bytes 8 to 23, which no command uses. OTHER has no
 * list, because a passthrough command may have any value. CONTROLLER has no range for the NSID,
 * which a passthrough Identify may set.
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
	[READ] = UNUSED { { 50, 51 }, { 52, 56 }, { 60, 64 }, {} },
	[WRITE] = UNUSED { { 50, 51 }, { 52, 56 }, { 60, 64 }, {} },
	[TRAP_READ] = UNUSED { { 50, 51 }, { 52, 56 }, { 60, 64 }, {} },
	[TRAP_WRITE] = UNUSED { { 50, 51 }, { 52, 56 }, { 60, 64 }, {} },
	[DISCARD] = UNUSED { { 41, 44 }, { 45, 64 }, {} },
	[ZEROES] = UNUSED { { 24, 39 }, { 50, 51 }, { 52, 56 }, { 60, 64 }, {} },
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
	/* With a keyed SGL the data is not in the capsule. */
	unsigned int data = keyed ? 0 : described(sqe);
	enum step step = step_of(queue, sqe);

	if (length != SQE_SIZE + data)
		accuse("capsule of %u bytes with %u bytes of data", length, data);
	if (sqe[1] != BY_DESCRIPTOR)
		accuse("flags of command %#x are %#x", sqe[0], sqe[1]);
	if (!keyed)
		check_zeroes("a descriptor without a key", descriptor, 12, 15);
	check_unused(sqe, step);
	if (step == READ || step == WRITE)
		check_blocks(sqe);
	switch (step) {
	case READ: case WRITE: case TRAP_READ: case TRAP_WRITE: case ZEROES:
		check_protection(sqe);
		break;
	default:
		break;
	}
}
