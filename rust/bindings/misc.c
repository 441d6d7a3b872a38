// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <rdma/ib_addr.h>

__rrdma_helper void rrdma_helper_rdma_gid2ip(struct sockaddr *out, const union ib_gid *gid)
{
	rdma_gid2ip(out, gid);
}

/* i_cdev is in an anonymous union, which bindgen names by a number. */
__rrdma_helper struct cdev *rrdma_helper_inode_cdev(const struct inode *inode)
{
	return inode->i_cdev;
}

__rrdma_helper void rrdma_helper_ratelimit_default_init(struct ratelimit_state *rs)
{
	ratelimit_default_init(rs);
}

__rrdma_helper void rrdma_helper_kernel_param_lock(struct module *mod)
{
	kernel_param_lock(mod);
}

__rrdma_helper void rrdma_helper_kernel_param_unlock(struct module *mod)
{
	kernel_param_unlock(mod);
}

__rrdma_helper bool rrdma_helper_within_module_core(unsigned long addr, const struct module *mod)
{
	return within_module_core(addr, mod);
}

/*
 * A module whose init function fails is freed, whatever references to it exist.
 * So nothing that holds a reference may be created before.
 */
__rrdma_helper bool rrdma_helper_module_is_loading(const struct module *mod)
{
	return mod && READ_ONCE(mod->state) == MODULE_STATE_COMING;
}
