// SPDX-License-Identifier: GPL-2.0
/*
 * Exports the rrdma crate to the modules built on it, as rust/exports.c of the
 * kernel does for the kernel crate. The list is made by Kbuild.
 */

#include <linux/export.h>

#define EXPORT_SYMBOL_RUST_GPL(sym) extern int sym; EXPORT_SYMBOL_GPL(sym)

#include "exports_generated.h"
