// SPDX-License-Identifier: GPL-2.0

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

/* A valid argument for allocations: an online node or NUMA_NO_NODE. */
__rrdma_helper bool rrdma_helper_numa_node_usable(int node)
{
	return node == NUMA_NO_NODE ||
	       (node >= 0 && node < MAX_NUMNODES && node_online(node));
}

/* sg_init_one(), but fails unless the memory is in the linear mapping. */
__rrdma_helper bool rrdma_helper_sg_init_linear(struct scatterlist *sg, void *buf,
						unsigned int length)
{
	if (!virt_addr_valid(buf) || !virt_addr_valid(buf + length - 1))
		return false;
	sg_init_one(sg, buf, length);
	return true;
}

__rrdma_helper void rrdma_helper_sg_set_page(struct scatterlist *sg, struct page *page,
					     unsigned int length, unsigned int offset)
{
	sg_set_page(sg, page, length, offset);
}

/* Returns with q->limits_lock held. */
__rrdma_helper void rrdma_helper_queue_limits_start_update(struct request_queue *q,
							   struct queue_limits *lim)
	__acquires(&q->limits_lock)
{
	*lim = queue_limits_start_update(q);
}

__rrdma_helper void rrdma_helper_queue_limits_cancel_update(struct request_queue *q)
	__releases(&q->limits_lock)
{
	queue_limits_cancel_update(q);
}

/*
 * Have the queue count its users in one variable, not one for each CPU. A freeze then waits for no
 * grace period. C: the first part of blk_freeze_queue_start().
 */
__rrdma_helper void rrdma_helper_blk_queue_count_atomically(struct request_queue *q)
{
	percpu_ref_switch_to_atomic(&q->q_usage_counter, NULL);
}

/* blk_mq_freeze_queue() without the wait. */
__rrdma_helper unsigned int rrdma_helper_blk_freeze_queue_begin(struct request_queue *q)
{
	unsigned int memflags = memalloc_noio_save();

	blk_freeze_queue_start(q);
	return memflags;
}

__rrdma_helper void rrdma_helper_blk_mq_unfreeze_queue(struct request_queue *q,
						       unsigned int memflags)
{
	blk_mq_unfreeze_queue(q, memflags);
}

__rrdma_helper bool rrdma_helper_blk_queue_quiesced(const struct request_queue *q)
{
	return blk_queue_quiesced(q);
}

/*
 * blk_mq_unquiesce_tagset(), but skips queues that are not quiesced. It would
 * warn about a queue that has just joined the set.
 */
__rrdma_helper void rrdma_helper_blk_mq_unquiesce_tagset_quiesced(struct blk_mq_tag_set *set)
{
	struct request_queue *q;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &set->tag_list, tag_set_list) {
		if (blk_queue_quiesced(q))
			blk_mq_unquiesce_queue(q);
	}
	rcu_read_unlock();
}

/*
 * blk_mq_delay_kick_requeue_list(), but never postpones an earlier kick: the
 * list has a single timer, which also releases requests that are due earlier.
 * The lock keeps other calls of this function from coming between the test and
 * the change of the timer. A kick by blk-flush does not take it.
 */
__rrdma_helper void rrdma_helper_blk_mq_kick_within(struct request_queue *q, unsigned int msecs)
{
	struct delayed_work *work = &q->requeue_work;
	unsigned long due = jiffies + msecs_to_jiffies(msecs);
	unsigned long flags;

	spin_lock_irqsave(&q->requeue_lock, flags);
	if (!delayed_work_pending(work) ||
	    (timer_pending(&work->timer) && time_after(READ_ONCE(work->timer.expires), due)))
		blk_mq_delay_kick_requeue_list(q, msecs);
	spin_unlock_irqrestore(&q->requeue_lock, flags);
}

/* Whether a started request has been in flight for this time, in jiffies. */
__rrdma_helper bool rrdma_helper_rq_in_flight_for(const struct request *rq, unsigned long span)
{
	unsigned long started = READ_ONCE(rq->deadline) - READ_ONCE(rq->timeout);

	return jiffies - started >= span;
}

/*
 * blk_mq_tagset_busy_iter(), but may run during blk_mq_update_nr_hw_queues(),
 * which frees set->tags after it has frozen all queues: the reference to one of
 * them delays that. A queue without a reference has no requests.
 */
__rrdma_helper void rrdma_helper_blk_mq_iter_started(struct blk_mq_tag_set *set,
							 busy_tag_iter_fn *fn, void *priv)
{
	struct request_queue *q;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &set->tag_list, tag_set_list) {
		if (!percpu_ref_tryget(&q->q_usage_counter))
			continue;
		blk_mq_tagset_busy_iter(set, fn, priv);
		percpu_ref_put(&q->q_usage_counter);
		break;
	}
	rcu_read_unlock();
}

/*
 * Kick the requeue lists of all queues. A queue whose usage counter is zero has
 * no requests, and may be about to be freed: its requeue work must not be
 * started any more.
 */
__rrdma_helper void rrdma_helper_blk_mq_kick_tagset(struct blk_mq_tag_set *set)
{
	struct request_queue *q;

	rcu_read_lock();
	list_for_each_entry_rcu(q, &set->tag_list, tag_set_list) {
		if (!percpu_ref_tryget(&q->q_usage_counter))
			continue;
		rrdma_helper_blk_mq_kick_within(q, 0);
		percpu_ref_put(&q->q_usage_counter);
	}
	rcu_read_unlock();
}

__rrdma_helper bool rrdma_helper_blk_queue_dying(struct request_queue *q)
{
	return blk_queue_dying(q);
}

__rrdma_helper bool rrdma_helper_blk_mq_tag_set_unused(struct blk_mq_tag_set *set)
{
	bool unused;

	mutex_lock(&set->tag_list_lock);
	unused = list_empty(&set->tag_list);
	mutex_unlock(&set->tag_list_lock);
	return unused;
}

__rrdma_helper void rrdma_helper_blk_queue_usage_get(struct request_queue *q)
{
	percpu_ref_get(&q->q_usage_counter);
}

__rrdma_helper void rrdma_helper_blk_queue_usage_put(struct request_queue *q)
{
	percpu_ref_put(&q->q_usage_counter);
}

/* synchronize_rcu_tasks() is a macro in kernels without CONFIG_TASKS_RCU. */
__rrdma_helper void rrdma_helper_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}

__rrdma_helper sector_t rrdma_helper_bdev_nr_sectors(struct block_device *bdev)
{
	return bdev_nr_sectors(bdev);
}

__rrdma_helper bool rrdma_helper_bdev_is_partition(struct block_device *bdev)
{
	return bdev_is_partition(bdev);
}

/* Opens of the disk and of its partitions. */
__rrdma_helper unsigned int rrdma_helper_disk_openers(struct gendisk *disk)
{
	return disk_openers(disk);
}

/* Exclusive claims of the disk and of its partitions. C counts both at the disk, see bd_may_claim(). */
__rrdma_helper unsigned int rrdma_helper_disk_claims(struct gendisk *disk)
{
	return READ_ONCE(disk->part0->bd_holders);
}

/* For a disk that is not added: no partition scan before the first one below. */
__rrdma_helper void rrdma_helper_disk_suppress_part_scan(struct gendisk *disk)
{
	set_bit(GD_SUPPRESS_PART_SCAN, &disk->state);
}

__rrdma_helper int rrdma_helper_disk_scan_partitions(struct gendisk *disk)
{
	int ret;

	clear_bit(GD_SUPPRESS_PART_SCAN, &disk->state);
	mutex_lock(&disk->open_mutex);
	ret = bdev_disk_changed(disk, false);
	mutex_unlock(&disk->open_mutex);
	return ret;
}
