// SPDX-License-Identifier: GPL-2.0

//! `rnvmf list`.

use super::print;
use crate::cli::{Format, List};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::render::list;
use std::io::Write;

/// Print the disks.
pub(super) fn run(
    options: &List,
    kernel: &mut impl Kernel,
    out: &mut impl Write,
) -> Result<(), Error> {
    let controllers = kernel.controllers()?;
    let namespaces = kernel.namespaces()?;
    let text = match options.output.format {
        Format::Normal => list::normal(&controllers, &namespaces),
        Format::Json => list::json(&controllers, &namespaces),
    };
    print(out, &text)
}
