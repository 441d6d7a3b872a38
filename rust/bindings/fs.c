// SPDX-License-Identifier: GPL-2.0

#include <linux/fs.h>

/* i_cdev is in an anonymous union, which bindgen names by a number. */
__rrdma_helper struct cdev *rrdma_helper_inode_cdev(const struct inode *inode)
{
	return inode->i_cdev;
}
