/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What hostile_target and hostile_host share: sizes, numbers on the wire, and random numbers.
 */
#ifndef HOSTILE_BYTES_H
#define HOSTILE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define SQE_SIZE	64
#define CQE_SIZE	16

/* Little-endian numbers of any width. */

static inline void put(uint8_t *at, uint64_t number, unsigned int bytes)
{
	uint64_t little = htole64(number);

	memcpy(at, &little, bytes);
}

static inline uint64_t get(const uint8_t *at, unsigned int bytes)
{
	uint64_t little = 0;

	memcpy(&little, at, bytes);
	return le64toh(little);
}

/* Returns the state of a random sequence. Similar seeds must give different sequences. */
static inline uint64_t random_begin(uint64_t seed)
{
	return (seed + 1) * 0x9e3779b97f4a7c15;
}

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Returns a number; each bit length has the same probability. */
static inline uint64_t random_of_any_length(uint64_t *state)
{
	unsigned int shift = random_next(state) % 64;

	return random_next(state) >> shift;
}
#endif
