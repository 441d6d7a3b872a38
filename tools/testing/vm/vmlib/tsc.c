// SPDX-License-Identifier: GPL-2.0
/*
 * Print how often the processor's time stamp counter counts in a millisecond.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define INTERVAL_NS	50000000
#define NS_PER_MS	1000000

struct moment {
	uint64_t tsc, ns;
};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* By both clocks: of several times that in which the least passed between the two. */
static struct moment now(void)
{
	uint64_t least = UINT64_MAX, before, tsc, after;
	struct moment best = { 0 };
	int n;

	for (n = 0; n < 100; n++) {
		before = now_ns();
		tsc = __rdtsc();
		after = now_ns();
		if (after - before < least) {
			least = after - before;
			best = (struct moment) { tsc, before };
		}
	}
	return best;
}

int main(void)
{
	struct moment begin = now(), end;

	do
		end = now();
	while (end.ns - begin.ns < INTERVAL_NS);
	printf("%" PRIu64 "\n", (end.tsc - begin.tsc) * NS_PER_MS / (end.ns - begin.ns));
	return 0;
}
