// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in the VM: makes the QEMU plugin (instructions.c) write its counts, and prints the time in
 * nanoseconds. With an argument N it does so twice, and executes about N instructions in between,
 * to check the plugin.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Executes the marker, a `nopl` with a displacement that no compiler emits. Returns the time. */
static uint64_t mark(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 'r', 'n', 'v', 'm'");
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	/* Each turn of the loop has two instructions. */
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
