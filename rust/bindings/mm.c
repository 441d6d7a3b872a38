// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/mm.h>
#include <linux/string.h>
#include <linux/vmstat.h>

/* Includes the per-CPU lists, which may hold many MiB. */
static u64 rrdma_free_pages(struct zone *zone)
{
	u64 pages = zone_page_state_snapshot(zone, NR_FREE_PAGES);
	int cpu;

	for_each_online_cpu(cpu)
		pages += READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
	return pages;
}

__rrdma_helper u64 rrdma_helper_total_memory(void)
{
	return (u64)totalram_pages() << PAGE_SHIFT;
}

__rrdma_helper u64 rrdma_helper_free_memory(void)
{
	u64 pages = 0;
	int node, i;

	for_each_online_node(node) {
		struct zone *zones = NODE_DATA(node)->node_zones;

		for (i = 0; i < MAX_NR_ZONES; i++)
			if (populated_zone(&zones[i]))
				pages += rrdma_free_pages(&zones[i]);
	}
	return pages << PAGE_SHIFT;
}

/* The copy is never freed, intentionally. */
__rrdma_helper char *rrdma_helper_lasting_copy(const char *text)
{
	char *copy = kstrdup(text, GFP_KERNEL);

	kmemleak_not_leak(copy);
	return copy;
}

__rrdma_helper unsigned int rrdma_helper_memalloc_noio_save(void)
{
	return memalloc_noio_save();
}

__rrdma_helper void rrdma_helper_memalloc_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}
