// SPDX-License-Identifier: GPL-2.0
/*
 * Makes an RDMA device break the rules of the verbs, as some devices do. The
 * module replaces one operation of the device, until it is unloaded:
 *
 * post     A post of several work requests posts the first one, and fails as if
 *          it had posted none (erdma with a full queue).
 * foreign  A post of several work requests posts the first one, and fails with a
 *          work request that is not among them.
 * drain    The driver has drain operations, which do nothing (mlx5, if a queue
 *          is full).
 * late     A queue pair has a fatal error while it is destroyed.
 * event    A queue pair has a fatal error before it is returned to its creator
 *          (bnxt_re, when the device recovers).
 * deaf     No completion is polled, and each queue that is polled has an error.
 * mute     No completion is polled.
 * gaps     The device registers memory with gaps only.
 * last     No queue pair reports its last shared receive (irdma, qedr).
 * irdma, qedr
 *          The device has the number of this driver.
 * undrained
 *          The device refuses to move a queue pair to its error state, and the
 *          driver has drain operations, which do nothing.
 *
 * When the module is unloaded, the completions are there, and the queue pair that
 * was moved to its error state last reports its last shared receive, unless it was
 * destroyed.
 *
 * Others fail three times:
 *
 * refuse   A post of several work requests fails, although there is room for them.
 * silent   A post fails and does not return the failed work request (rdmavt).
 * error, dereg, destroy_qp, destroy_srq, detach
 *          The device refuses to move a queue pair to its error state, or to
 *          end an object.
 *
 * These fail once:
 *
 * map      A region cannot be mapped to its data.
 * aer      A post of an NVMe Asynchronous Event Request fails for lack of memory.
 *          The device must be a soft one, whose addresses are virtual.
 */

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "name of the RDMA device");

static char *lie = "";
module_param(lie, charp, 0444);
MODULE_PARM_DESC(lie, "operation to replace");

static atomic_t refusals = ATOMIC_INIT(3);
static struct ib_device *victim;
static struct ib_device_ops honest;

/* Handler of the core for the events of queue pairs, and the event that it did not get. */
static void (*honest_handler)(struct ib_event *event, void *context);
static struct ib_event kept;

static bool refused(void)
{
	return atomic_dec_if_positive(&refusals) >= 0;
}

static int post_first(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct ib_send_wr *first = (struct ib_send_wr *)wr;
	struct ib_send_wr *next = wr->next;
	int ret;

	if (!next)
		return honest.post_send(qp, wr, bad);
	first->next = NULL;
	ret = honest.post_send(qp, wr, bad);
	first->next = next;
	*bad = wr;
	return ret ?: -ENOMEM;
}

static int post_foreign(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	static const struct ib_send_wr foreign;
	int ret = post_first(qp, wr, bad);

	if (ret != -ENOMEM)
		return ret;
	*bad = &foreign;
	return -EINVAL;
}

static int post_refuse(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	if (!wr->next || !refused())
		return honest.post_send(qp, wr, bad);
	*bad = wr;
	return -EINVAL;
}

static int post_silent(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	return refused() ? -EINVAL : honest.post_send(qp, wr, bad);
}

static bool is_aer(const struct ib_send_wr *wr)
{
	const u8 *command;

	/* Size of a command, and its opcode. */
	if (wr->opcode != IB_WR_SEND || !wr->num_sge || wr->sg_list[0].length != 64)
		return false;
	command = (const u8 *)(uintptr_t)wr->sg_list[0].addr;
	return command[0] == 0x0c;
}

static int post_no_aer(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	if (!is_aer(wr) || !refused())
		return honest.post_send(qp, wr, bad);
	*bad = wr;
	return -ENOMEM;
}

static int map_nothing(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
		       unsigned int *sg_offset)
{
	return refused() ? -EINVAL : honest.map_mr_sg(mr, sg, sg_nents, sg_offset);
}

static void drain_nothing(struct ib_qp *qp)
{
}

static void fail_qp(struct ib_qp *qp)
{
	struct ib_event fatal = {
		.device = qp->device,
		.element.qp = qp,
		.event = IB_EVENT_QP_FATAL,
	};

	qp->event_handler(&fatal, qp->qp_context);
}

static int create_with_event(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	int ret = honest.create_qp(qp, attr, udata);

	if (!ret)
		fail_qp(qp);
	return ret;
}

static int destroy_with_event(struct ib_qp *qp, struct ib_udata *udata)
{
	fail_qp(qp);
	return honest.destroy_qp(qp, udata);
}

static int poll_silently(struct ib_cq *cq, int count, struct ib_wc *wc)
{
	return 0;
}

static int poll_nothing(struct ib_cq *cq, int count, struct ib_wc *wc)
{
	struct ib_event error = {
		.device = cq->device,
		.element.cq = cq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->event_handler)
		cq->event_handler(&error, cq->cq_context);
	return 0;
}

static void keep_last(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		kept = *event;
	else
		honest_handler(event, context);
}

static int create_and_keep_last(struct ib_qp *qp, struct ib_qp_init_attr *attr,
				struct ib_udata *udata)
{
	honest_handler = qp->event_handler;
	qp->event_handler = keep_last;
	return honest.create_qp(qp, attr, udata);
}

static int destroy_and_forget_last(struct ib_qp *qp, struct ib_udata *udata)
{
	int ret = honest.destroy_qp(qp, udata);

	if (!ret && kept.element.qp == qp)
		kept.device = NULL;
	return ret;
}

static int refuse_any_error(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			    struct ib_udata *udata)
{
	if (attr->qp_state == IB_QPS_ERR)
		return -EIO;
	return honest.modify_qp(qp, attr, mask, udata);
}

static int refuse_error(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	if (attr->qp_state == IB_QPS_ERR && refused())
		return -EIO;
	return honest.modify_qp(qp, attr, mask, udata);
}

static int refuse_dereg(struct ib_mr *mr, struct ib_udata *udata)
{
	return refused() ? -EIO : honest.dereg_mr(mr, udata);
}

static int refuse_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	return refused() ? -EIO : honest.destroy_qp(qp, udata);
}

static int refuse_destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	return refused() ? -EIO : honest.destroy_srq(srq, udata);
}

static int refuse_detach(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return refused() ? -EIO : honest.detach_mcast(qp, gid, lid);
}

static struct ib_mr *alloc_gaps(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	if (type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(-EINVAL);
	return honest.alloc_mr(pd, IB_MR_TYPE_MEM_REG, max_num_sg);
}

static int replace(struct ib_device_ops *ops)
{
	if (!strcmp(lie, "post"))
		ops->post_send = post_first;
	else if (!strcmp(lie, "foreign"))
		ops->post_send = post_foreign;
	else if (!strcmp(lie, "refuse"))
		ops->post_send = post_refuse;
	else if (!strcmp(lie, "silent"))
		ops->post_send = post_silent;
	else if (!strcmp(lie, "aer")) {
		atomic_set(&refusals, 1);
		ops->post_send = post_no_aer;
	} else if (!strcmp(lie, "map")) {
		atomic_set(&refusals, 1);
		ops->map_mr_sg = map_nothing;
	} else if (!strcmp(lie, "drain"))
		ops->drain_sq = ops->drain_rq = drain_nothing;
	else if (!strcmp(lie, "event"))
		ops->create_qp = create_with_event;
	else if (!strcmp(lie, "late"))
		ops->destroy_qp = destroy_with_event;
	else if (!strcmp(lie, "deaf"))
		ops->poll_cq = poll_nothing;
	else if (!strcmp(lie, "mute"))
		ops->poll_cq = poll_silently;
	else if (!strcmp(lie, "gaps")) {
		victim->attrs.kernel_cap_flags |= IBK_SG_GAPS_REG;
		ops->alloc_mr = alloc_gaps;
	} else if (!strcmp(lie, "last")) {
		ops->create_qp = create_and_keep_last;
		ops->destroy_qp = destroy_and_forget_last;
	} else if (!strcmp(lie, "irdma"))
		ops->driver_id = RDMA_DRIVER_IRDMA;
	else if (!strcmp(lie, "qedr"))
		ops->driver_id = RDMA_DRIVER_QEDR;
	else if (!strcmp(lie, "undrained")) {
		ops->modify_qp = refuse_any_error;
		ops->drain_sq = ops->drain_rq = drain_nothing;
	} else if (!strcmp(lie, "error"))
		ops->modify_qp = refuse_error;
	else if (!strcmp(lie, "dereg"))
		ops->dereg_mr = refuse_dereg;
	else if (!strcmp(lie, "destroy_qp"))
		ops->destroy_qp = refuse_destroy_qp;
	else if (!strcmp(lie, "destroy_srq"))
		ops->destroy_srq = refuse_destroy_srq;
	else if (!strcmp(lie, "detach"))
		ops->detach_mcast = refuse_detach;
	else
		return -EINVAL;
	return 0;
}

static int liar_add(struct ib_device *added)
{
	if (strcmp(dev_name(&added->dev), device))
		return -EOPNOTSUPP;
	victim = added;
	honest = added->ops;
	return replace(&added->ops);
}

static void liar_remove(struct ib_device *removed, void *data)
{
	removed->ops = honest;
	if (!strcmp(lie, "gaps"))
		removed->attrs.kernel_cap_flags &= ~IBK_SG_GAPS_REG;
	/* Wait until no task is in one of the functions above. */
	synchronize_rcu_tasks();
	if (kept.device) {
		kept.element.qp->event_handler = honest_handler;
		honest_handler(&kept, kept.element.qp->qp_context);
	}
	victim = NULL;
}

static struct ib_client client = {
	.name = "rrdma_liar",
	.add = liar_add,
	.remove = liar_remove,
};

static int __init liar_init(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	if (victim)
		return 0;
	ib_unregister_client(&client);
	return -ENODEV;
}
module_init(liar_init);

static void __exit liar_exit(void)
{
	ib_unregister_client(&client);
}
module_exit(liar_exit);

MODULE_AUTHOR("The rnvmf developers");
MODULE_DESCRIPTION("Test: an RDMA device that breaks the rules of the verbs");
MODULE_LICENSE("GPL");
