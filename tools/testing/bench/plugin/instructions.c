// SPDX-License-Identifier: GPL-2.0
/*
 * QEMU plugin that counts executed instructions by address.
 *
 * Each start address of a translation block has a counter; user space has a single one. When the
 * guest executes the marker (see mark.c), the counts since the previous marker are written to the
 * file DIRECTORY/profile.N. N counts the markers from 0. Each line has an address in hexadecimal, the
 * number of instructions, and the number of executions of the block. Address 0 is user space. Address
 * 1 is all blocks without a counter of their own, because the table is full.
 *
 * argument: out=DIRECTORY
 *
 * Supports one CPU. Debian's QEMU supports plugins but has no header for them, so the used part of
 * the interface is declared here: version 4, of QEMU 9.2 to 10.0.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* --- QEMU plugin interface --- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

typedef struct {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
} qemu_info_t;

enum { INLINE_ADD_U64 };
enum { CB_NO_REGS };

EXPORT int qemu_plugin_version = 4;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

void qemu_plugin_outs(const char *string);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
		void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op,
		qemu_plugin_u64 entry, uint64_t operand);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		void (*executed)(unsigned int, void *), int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);

/* --- */

#define BITS 19
#define PLACES (1u << BITS)
#define USER 0
#define OTHER 1

static const unsigned char marker[] = { 0x0f, 0x1f, 0x80, 'r', 'n', 'v', 'm' };

struct counter {
	uint64_t instructions;
	uint64_t times;
};

static struct qemu_plugin_scoreboard *counters;
/* Address of each counter: a hash table with open addressing; 0 is a free entry. */
static uint64_t addresses[PLACES];
static unsigned int used;
static const char *directory;

/* Returns the counter of an address. No lock: blocks are translated one at a time. */
static unsigned int place(uint64_t address)
{
	unsigned int at;

	if (!(address >> 63))
		return USER;
	at = (address * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - BITS);
	while (at <= OTHER || (addresses[at] && addresses[at] != address))
		at = (at + 1) % PLACES;
	if (!addresses[at]) {
		if (used == PLACES / 2)
			return OTHER;
		used++;
		addresses[at] = address;
	}
	return at;
}

static void write_profile(unsigned int vcpu, void *unused)
{
	static unsigned int number;
	static struct counter written[PLACES];
	const struct counter *counts = qemu_plugin_scoreboard_find(counters, vcpu);
	char path[256];
	unsigned int at;
	FILE *file;

	(void)unused;
	snprintf(path, sizeof(path), "%s/profile.%u", directory, number++);
	file = fopen(path, "w");
	if (!file) {
		qemu_plugin_outs("instructions: cannot write a profile\n");
		return;
	}
	for (at = 0; at < PLACES; at++) {
		if (counts[at].times == written[at].times)
			continue;
		fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", addresses[at],
			counts[at].instructions - written[at].instructions,
			counts[at].times - written[at].times);
		written[at] = counts[at];
	}
	fclose(file);
}

static bool is_marker(const struct qemu_plugin_insn *insn)
{
	unsigned char bytes[sizeof(marker)];

	return qemu_plugin_insn_size(insn) == sizeof(marker) &&
	       qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       !memcmp(bytes, marker, sizeof(marker));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb), i;
	unsigned int at = place(qemu_plugin_tb_vaddr(tb));
	size_t counter = at * sizeof(struct counter);
	qemu_plugin_u64 instructions = {
		counters, counter + offsetof(struct counter, instructions)
	};
	qemu_plugin_u64 times = { counters, counter + offsetof(struct counter, times) };

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD_U64, instructions, count);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, INLINE_ADD_U64, times, 1);
	for (i = 0; at == USER && i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (is_marker(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, write_profile, CB_NO_REGS, NULL);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4) || info->system.max_vcpus != 1)
		return -1;
	directory = strdup(argv[0] + 4);
	addresses[OTHER] = OTHER;
	counters = qemu_plugin_scoreboard_new(PLACES * sizeof(struct counter));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
