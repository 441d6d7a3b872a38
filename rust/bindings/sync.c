// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/swait.h>
#include <linux/workqueue.h>

__rrdma_helper unsigned long rrdma_helper_spin_lock_irqsave(spinlock_t *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

__rrdma_helper bool rrdma_helper_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags)
{
	return spin_trylock_irqsave(lock, *flags);
}

__rrdma_helper void rrdma_helper_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}

__rrdma_helper struct workqueue_struct *
rrdma_helper_alloc_workqueue(const char *name, unsigned int flags, int max_active)
{
	return alloc_workqueue("%s", flags, max_active, name);
}

__rrdma_helper void rrdma_helper_flush_workqueue(struct workqueue_struct *wq)
{
	/* flush_workqueue() only adds a warning for system workqueues. */
	__flush_workqueue(wq);
}

__rrdma_helper struct task_struct *
rrdma_helper_kthread_run(int (*threadfn)(void *data), void *data, const char *name)
{
	return kthread_run(threadfn, data, "%s", name);
}

/* TASK_IDLE: long waits count neither as load nor as a hung task. */
__rrdma_helper void rrdma_helper_wait_for_completion_idle(struct completion *x)
{
	/* TASK_IDLE is not interruptible, so this cannot fail. */
	wait_for_completion_state(x, TASK_IDLE);
}

/* The kernel has no wait_for_completion_idle_timeout(). */
__rrdma_helper bool
rrdma_helper_wait_for_completion_idle_timeout(struct completion *x, unsigned long timeout)
{
	bool done;

	done = swait_event_idle_timeout_exclusive(x->wait, try_wait_for_completion(x), timeout);
	/*
	 * complete() may have woken this waiter after its last check. Pass the
	 * wake-up on to the next one.
	 */
	if (!done && completion_done(x))
		swake_up_one(&x->wait);
	return done;
}

/* reinit_completion(), but may run concurrently with complete(). */
__rrdma_helper void rrdma_helper_reinit_completion_locked(struct completion *x)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&x->wait.lock, flags);
	x->done = 0;
	raw_spin_unlock_irqrestore(&x->wait.lock, flags);
}

/* CONFIG_PREEMPT_RCU implies CONFIG_PREEMPT_COUNT, so this knows of spinlocks, too. */
__rrdma_helper bool rrdma_helper_may_sleep(void)
{
	return !in_atomic() && !irqs_disabled() && !rcu_preempt_depth();
}

__rrdma_helper struct workqueue_struct *rrdma_helper_system_dfl_wq(void)
{
	return system_dfl_wq;
}

__rrdma_helper void rrdma_helper_preempt_disable(void)
{
	preempt_disable();
}

__rrdma_helper void rrdma_helper_preempt_enable(void)
{
	preempt_enable();
}

__rrdma_helper unsigned int rrdma_helper_num_online_cpus(void)
{
	return num_online_cpus();
}

__rrdma_helper void rrdma_helper_cond_resched(void)
{
	cond_resched();
}
