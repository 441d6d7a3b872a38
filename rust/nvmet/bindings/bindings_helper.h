/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen: the private header of nvmet, which the source package of the
 * kernel has.
 */

#include "helpers.c"
