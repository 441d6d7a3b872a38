// SPDX-License-Identifier: GPL-2.0
/*
 * Lets a reset overtake a time-out of nvme_rdma_rust. The thread of the next
 * command that times out is held twice:
 *
 *   time-out                              reset
 *   -> blk_mq_ops::timeout
 *      stage 1: waits for the teardown
 *                                         teardown begins
 *                                         stage 2: waits for the time-out
 *      sees that the controller is reset
 *      stage 3: waits for the parameter
 *      "release" before it takes the lock
 *      of its queue
 *                                         teardown, connect: live
 *      stage 4: disconnects its queue
 *
 * The functions at these points are replaced by kprobes, whose handlers change
 * the instruction pointer: the replacements may sleep.
 */

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

enum stage { ARMED, TIMED_OUT, TEARDOWN, NOTED, RELEASED };

static atomic_t stage = ATOMIC_INIT(ARMED);
/* Threads in the replacements. */
static atomic_t held = ATOMIC_INIT(0);
/* The thread of the time-out. */
static struct task_struct *late;

static int get_stage(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&stage));
}

static const struct kernel_param_ops stage_ops = { .get = get_stage };
module_param_cb(stage, &stage_ops, NULL, 0444);
MODULE_PARM_DESC(stage, "how far the threads are");

static int release(const char *value, const struct kernel_param *param)
{
	atomic_set(&stage, RELEASED);
	return 0;
}

static const struct kernel_param_ops release_ops = { .set = release };
module_param_cb(release, &release_ops, NULL, 0200);
MODULE_PARM_DESC(release, "let the threads go on");

static void hold_until(enum stage end)
{
	while (atomic_read(&stage) < end)
		schedule_timeout_idle(1);
}

/* In place of nvme_core_helper_log_timeout(), without its line in the log. */
static void late_log_timeout(void *ctrl, void *rq, u16 qid)
{
	hold_until(TEARDOWN);
	atomic_dec(&held);
}

static void late_wait_quiesce_done(struct blk_mq_tag_set *set)
{
	hold_until(NOTED);
	blk_mq_wait_quiesce_done(set);
	atomic_dec(&held);
}

static void late_mutex_lock(struct mutex *lock)
{
	hold_until(RELEASED);
	mutex_lock(lock);
	atomic_dec(&held);
}

/* Lets the function of a probe be replaced, if the stage is "from", which ends. */
static int replace(enum stage from, struct pt_regs *regs, void *with)
{
	if (atomic_cmpxchg(&stage, from, from + 1) != from)
		return 0;
	atomic_inc(&held);
	instruction_pointer_set(regs, (unsigned long)with);
	return 1;
}

static int at_timeout(struct kprobe *probe, struct pt_regs *regs)
{
	if (atomic_read(&stage) == ARMED)
		late = current;
	return replace(ARMED, regs, late_log_timeout);
}

static int at_teardown(struct kprobe *probe, struct pt_regs *regs)
{
	return replace(TIMED_OUT, regs, late_wait_quiesce_done);
}

static int at_lock(struct kprobe *probe, struct pt_regs *regs)
{
	return current == late ? replace(TEARDOWN, regs, late_mutex_lock) : 0;
}

/* A probe that may change the instruction pointer has a handler of this kind, see Documentation/trace/kprobes.rst. */
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probes[] = {
	{
		.symbol_name = "nvme_core_helper_log_timeout",
		.pre_handler = at_timeout,
		.post_handler = after,
	},
	{
		.symbol_name = "blk_mq_wait_quiesce_done",
		.pre_handler = at_teardown,
		.post_handler = after,
	},
	{
		/* With lockdep, mutex_lock() is a macro. */
		.symbol_name = IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ? "mutex_lock_nested" : "mutex_lock",
		.pre_handler = at_lock,
		.post_handler = after,
	},
};

static void unregister(int count)
{
	while (count--)
		unregister_kprobe(&probes[count]);
}

static int __init late_timeout_init(void)
{
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		ret = register_kprobe(&probes[i]);
		if (ret) {
			unregister(i);
			return ret;
		}
	}
	return 0;
}
module_init(late_timeout_init);

static void __exit late_timeout_exit(void)
{
	atomic_set(&stage, RELEASED);
	unregister(ARRAY_SIZE(probes));
	while (atomic_read(&held))
		schedule_timeout_idle(1);
	/* A thread may be at the end of a replacement. */
	synchronize_rcu_tasks();
}
module_exit(late_timeout_exit);

MODULE_AUTHOR("The rnvmf developers");
MODULE_DESCRIPTION("Test: a time-out that a reset overtakes");
MODULE_LICENSE("GPL");
