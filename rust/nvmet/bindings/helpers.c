// SPDX-License-Identifier: GPL-2.0
/*
 * Wrappers of static inline functions and macros that nvmet's transports use,
 * which Rust cannot call. bindgen reads this file, too. It skips inline
 * functions, so helpers have a marker instead of "static inline".
 */

#include <linux/scatterlist.h>

#include "nvmet.h"

#define __nvmet_helper

/* Macros with casts, which bindgen does not evaluate. */
const gfp_t nvmet_const_GFP_KERNEL = GFP_KERNEL;
const gfp_t nvmet_const_GFP_ZEROED = GFP_KERNEL | __GFP_ZERO;

__nvmet_helper bool nvmet_helper_sq_tryget_live(struct nvmet_sq *sq)
{
	return percpu_ref_tryget_live(&sq->ref);
}

__nvmet_helper void nvmet_helper_sq_put(struct nvmet_sq *sq)
{
	percpu_ref_put(&sq->ref);
}

__nvmet_helper struct nvmet_ctrl *nvmet_helper_sq_ctrl(struct nvmet_sq *sq)
{
	return READ_ONCE(sq->ctrl);
}

__nvmet_helper void nvmet_helper_req_execute(struct nvmet_req *req)
{
	req->execute(req);
}

__nvmet_helper void
nvmet_helper_sg_init_one(struct scatterlist *sg, const void *bytes, unsigned int length)
{
	sg_init_one(sg, bytes, length);
}

/* Waits for works of nvmet, such as those that end controllers. */
__nvmet_helper void nvmet_helper_flush_works(void)
{
	flush_workqueue(nvmet_wq);
	flush_workqueue(nvmet_aen_wq);
}
