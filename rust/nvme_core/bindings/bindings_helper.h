/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen: private headers of nvme-core and nvme-fabrics, which the
 * source package of the kernel has.
 */

#include "helpers.c"
