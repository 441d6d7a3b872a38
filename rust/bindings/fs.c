// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>

/* In a union, which bindgen numbers. */
__rrdma_helper struct cdev *rrdma_helper_inode_cdev(const struct inode *inode)
{
	return inode->i_cdev;
}
