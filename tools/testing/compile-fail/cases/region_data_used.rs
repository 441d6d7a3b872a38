// SPDX-License-Identifier: GPL-2.0

//! Data that the peer may write cannot be read.
//!
//! refused: E0382: borrow of moved value: `data`

use kernel::prelude::*;
use rrdma::{
    rdma::{
        dma::Direction,
        mr::Region, //
    },
    scatter::Buffer,
};

pub(crate) fn expose(region: &mut Region<Buffer>, data: Buffer) -> Result<u32> {
    let mapped = region.dma_map(data, Direction::FromDevice);
    mapped.map_err(|(error, _)| error)?;
    #[cfg(misuse)]
    let _ = data.bytes().first(); //~
    Ok(region.map_sg()?.rkey)
}
