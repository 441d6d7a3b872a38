// SPDX-License-Identifier: GPL-2.0
/*
 * Lets blk_mq_update_nr_hw_queues() add no hardware queue to the only one, once:
 * it allocates the first one again, and then has no memory for the second.
 */

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sbitmap.h>
#include <linux/sched.h>

/* Allocations until one fails. */
static atomic_t left = ATOMIC_INIT(2);
/* The thread that changes the number of hardware queues. */
static struct task_struct *changes;

static int no_memory(struct sbitmap *sb, unsigned int depth, int shift, gfp_t flags, int node,
		     bool round_robin, bool alloc_hint)
{
	return -ENOMEM;
}

static int at_change(struct kprobe *probe, struct pt_regs *regs)
{
	WRITE_ONCE(changes, current);
	return 0;
}

/* The map of a hardware queue has a bit for each CPU. The maps of tags are larger. */
static int at_map(struct kprobe *probe, struct pt_regs *regs)
{
	if (READ_ONCE(changes) != current || regs_get_kernel_argument(regs, 1) != nr_cpu_ids ||
	    atomic_dec_return(&left))
		return 0;
	instruction_pointer_set(regs, (unsigned long)no_memory);
	return 1;
}

/* A probe that may change the instruction pointer has a handler of this kind, see Documentation/trace/kprobes.rst. */
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe change = {
	.symbol_name = "blk_mq_update_nr_hw_queues",
	.pre_handler = at_change,
};

static struct kprobe map = {
	.symbol_name = "sbitmap_init_node",
	.pre_handler = at_map,
	.post_handler = after,
};

static int __init no_hctx_init(void)
{
	int ret = register_kprobe(&change);

	if (ret)
		return ret;
	ret = register_kprobe(&map);
	if (ret)
		unregister_kprobe(&change);
	return ret;
}
module_init(no_hctx_init);

static void __exit no_hctx_exit(void)
{
	unregister_kprobe(&map);
	unregister_kprobe(&change);
	/* A thread may be in no_memory(). */
	synchronize_rcu_tasks();
}
module_exit(no_hctx_exit);

MODULE_AUTHOR("The rnvmf developers");
MODULE_DESCRIPTION("Test: no memory for a hardware queue");
MODULE_LICENSE("GPL");
