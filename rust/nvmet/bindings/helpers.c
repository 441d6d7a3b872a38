// SPDX-License-Identifier: GPL-2.0
/*
 * Wrappers of static inline functions and macros that nvmet's transports use,
 * which Rust cannot call. bindgen reads this file, too. It skips inline
 * functions, so helpers have a marker instead of "static inline".
 */

#include <linux/scatterlist.h>
#include <linux/workqueue.h>

#include "nvmet.h"

#ifdef CONFIG_NVME_TARGET_PASSTHRU
#ifndef __BINDGEN__
/* bindgen would make bindings of all structures that nvmet has pointers to. */
#include "../host/nvme.h"
#endif
MODULE_IMPORT_NS("NVME_TARGET_PASSTHRU");
#endif

#define __nvmet_helper

/* Macros with casts, which bindgen does not evaluate. */
const gfp_t nvmet_const_GFP_KERNEL = GFP_KERNEL;
const gfp_t nvmet_const_GFP_ZEROED = GFP_KERNEL | __GFP_ZERO;

__nvmet_helper bool nvmet_helper_sq_tryget_live(struct nvmet_sq *sq)
{
	return percpu_ref_tryget_live(&sq->ref);
}

/* For a caller that has a reference already, which may be to a queue that ends. */
__nvmet_helper void nvmet_helper_sq_get(struct nvmet_sq *sq)
{
	percpu_ref_get(&sq->ref);
}

__nvmet_helper void nvmet_helper_sq_put(struct nvmet_sq *sq)
{
	percpu_ref_put(&sq->ref);
}

__nvmet_helper struct nvmet_ctrl *nvmet_helper_sq_ctrl(struct nvmet_sq *sq)
{
	return READ_ONCE(sq->ctrl);
}

__nvmet_helper bool nvmet_helper_ctrl_has_key(struct nvmet_ctrl *ctrl)
{
#ifdef CONFIG_NVME_TARGET_AUTH
	return READ_ONCE(ctrl->host_key);
#else
	return false;
#endif
}

/*
 * Whether a host has enabled the controller of a queue. That needs authentication, if the host has a key. Discovery
 * controllers do not count, as any host may create them. For a caller that has a reference to the queue.
 */
__nvmet_helper bool nvmet_helper_sq_is_in_use(struct nvmet_sq *sq)
{
	struct nvmet_ctrl *ctrl = READ_ONCE(sq->ctrl);

	return ctrl && !nvmet_is_disc_subsys(ctrl->subsys) &&
	       (READ_ONCE(ctrl->csts) & NVME_CSTS_RDY);
}

/* Whether the controller of a queue has a keep-alive timer. For a caller that has a reference to the queue. */
__nvmet_helper bool nvmet_helper_sq_has_keep_alive(struct nvmet_sq *sq)
{
	struct nvmet_ctrl *ctrl = READ_ONCE(sq->ctrl);

	return ctrl && READ_ONCE(ctrl->kato);
}

/*
 * Takes a completion queue from its controller, when install_queue() refuses the queue. nvmet_install_queue() then
 * takes back the submission queue only. The controller would stay as long as the connection of the queue.
 */
__nvmet_helper void nvmet_helper_sq_drop_cq(struct nvmet_sq *sq)
{
	struct nvmet_ctrl *ctrl = sq->ctrl;

	ctrl->cqs[sq->qid] = NULL;
	sq->cq->ctrl = NULL;
	nvmet_ctrl_put(ctrl);
}

__nvmet_helper void nvmet_helper_req_execute(struct nvmet_req *req)
{
	req->execute(req);
}

/* Whether nvmet passes the command to a controller of this machine, if it does not execute the command itself. */
__nvmet_helper bool nvmet_helper_req_is_passthru(struct nvmet_req *req)
{
	return req->sq->ctrl && nvmet_is_passthru_req(req);
}

/* Only for a command for which nvmet_helper_req_is_passthru() was true. False if there is no such namespace. */
__nvmet_helper bool nvmet_helper_req_passthru_format(struct nvmet_req *req, u32 *block, u32 *metadata)
{
#if defined(CONFIG_NVME_TARGET_PASSTHRU) && !defined(__BINDGEN__)
	struct nvme_ctrl *ctrl = READ_ONCE(nvmet_req_subsys(req)->passthru_ctrl);
	struct nvme_ns *ns;

	ns = ctrl ? nvme_find_get_ns(ctrl, le32_to_cpu(req->cmd->common.nsid)) : NULL;
	if (!ns)
		return false;
	*block = 1u << ns->head->lba_shift;
	*metadata = ns->head->ms;
	nvme_put_ns(ns);
	return true;
#else
	return false;
#endif
}

/* Whether the caller runs in the work item that executes a command of a passthrough subsystem. */
__nvmet_helper bool nvmet_helper_req_is_in_passthru_work(struct nvmet_req *req)
{
	return current_work() == &req->p.work;
}

/* Only if nvmet_helper_req_is_in_passthru_work() was true: others have no such work item. */
__nvmet_helper void nvmet_helper_req_flush_passthru_work(struct nvmet_req *req)
{
	flush_work(&req->p.work);
}

__nvmet_helper void nvmet_helper_init_work(struct work_struct *work, work_func_t function)
{
	INIT_WORK(work, function);
}

__nvmet_helper void
nvmet_helper_sg_init_one(struct scatterlist *sg, const void *bytes, unsigned int length)
{
	sg_init_one(sg, bytes, length);
}

/* Copies a list to `cut` + `entries` entries. Each of the first `cut` bytes gets an entry of its own. */
__nvmet_helper void nvmet_helper_sg_cut(struct scatterlist *to, struct scatterlist *from,
					unsigned int entries, unsigned int cut)
{
	unsigned int n;

	sg_init_table(to, cut + entries);
	for (n = 0; n < cut; n++, to = sg_next(to))
		sg_set_page(to, sg_page(from), 1, from->offset + n);
	sg_set_page(to, sg_page(from), from->length - cut, from->offset + cut);
	for (n = 1; n < entries; n++) {
		from = sg_next(from);
		to = sg_next(to);
		sg_set_page(to, sg_page(from), from->length, from->offset);
	}
}

/* Waits for works of nvmet, such as those that end controllers. */
__nvmet_helper void nvmet_helper_flush_works(void)
{
	flush_workqueue(nvmet_wq);
	flush_workqueue(nvmet_aen_wq);
}
