// SPDX-License-Identifier: GPL-2.0
/*
 * In the VM: tells the plugin of the emulator (instructions.c) to write down what it has counted, and
 * prints the time in nanoseconds. With an argument it does so twice, and between the two executes so
 * many instructions, more or less a few: by that the plugin can be checked.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The time, and a `nopl` with a displacement that no compiler has. */
static uint64_t mark(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 'r', 'n', 'v', 'm'");
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	/* Two instructions a turn. */
	unsigned long turns = argc > 1 ? strtoul(argv[1], NULL, 10) / 2 : 0;
	uint64_t first = mark(), second;

	if (turns) {
		__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
		second = mark();
		printf("%" PRIu64 "\n%" PRIu64 "\n", first, second);
	} else {
		printf("%" PRIu64 "\n", first);
	}
	return 0;
}
