// SPDX-License-Identifier: GPL-2.0
/*
 * Makes group_cpus_evenly() fail, as without memory, until the module is
 * unloaded. blk-mq then maps all CPUs to the first hardware queue of a kind,
 * and frees the tags of the others. That takes longer than usual, so that
 * threads which free the same tags meet.
 */

#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/slab.h>

static int fail(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	kfree((void *)regs_return_value(regs));
	regs_set_return_value(regs, 0);
	return 0;
}

static int dawdle(struct kprobe *probe, struct pt_regs *regs)
{
	mdelay(20);
	return 0;
}

static struct kretprobe groups = {
	.kp.symbol_name = "group_cpus_evenly",
	.handler = fail,
};

static struct kprobe tags = {
	.symbol_name = "blk_mq_free_rqs",
	.pre_handler = dawdle,
};

static int __init no_cpu_groups_init(void)
{
	int ret = register_kprobe(&tags);

	if (ret)
		return ret;
	ret = register_kretprobe(&groups);
	if (ret)
		unregister_kprobe(&tags);
	return ret;
}
module_init(no_cpu_groups_init);

static void __exit no_cpu_groups_exit(void)
{
	unregister_kretprobe(&groups);
	unregister_kprobe(&tags);
}
module_exit(no_cpu_groups_exit);

MODULE_AUTHOR("The rnvmf developers");
MODULE_DESCRIPTION("Test: no memory to map CPUs to hardware queues");
MODULE_LICENSE("GPL");
