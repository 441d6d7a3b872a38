// SPDX-License-Identifier: GPL-2.0

//! Status of a completed command.
//!
//! Source: NVMe Base 2.3, section 4.2.3 (Status Field Definition).

mod code;

use core::fmt;

pub use self::code::Code;

/// Status field of a completion, without the phase tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status(u16);

impl Status {
    /// The command succeeded.
    pub const SUCCESS: Self = Self(0);

    const CODE: u16 = 0x07ff;
    const RETRY_DELAY_SHIFT: u32 = 11;
    const MORE: u16 = 0x2000;
    const DO_NOT_RETRY: u16 = 0x4000;

    /// Returns the status of a received field, whose lowest bit is the phase tag.
    #[inline]
    pub const fn from_wire(field: u16) -> Self {
        Self(field >> 1)
    }

    /// Returns a status that the host sets for a command without a response.
    #[inline]
    pub const fn from_code(code: Code) -> Self {
        Self(code.get() & Self::CODE)
    }

    /// Returns the field without the phase tag: 15 bits, as `include/linux/nvme.h` defines them.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns whether the command succeeded.
    #[inline]
    pub const fn is_success(self) -> bool {
        self.0 & Self::CODE == 0
    }

    /// Returns status code type (SCT) and status code (SC).
    #[inline]
    pub const fn code(self) -> Code {
        Code::new(self.0 & Self::CODE)
    }

    /// Returns the command retry delay (CRD): 1 to 3 for one of the controller's delays, 0 for
    /// none.
    #[inline]
    pub const fn retry_delay_index(self) -> u8 {
        (self.0 >> Self::RETRY_DELAY_SHIFT) as u8 & 3
    }

    /// Returns whether the Error Information log page has more (M).
    #[inline]
    pub const fn has_more(self) -> bool {
        self.0 & Self::MORE != 0
    }

    /// Returns whether the controller does not support the command or one of its parameters.
    ///
    /// Some targets report this without Do Not Retry.
    #[inline]
    pub const fn is_unsupported(self) -> bool {
        matches!(self.code(), Code::INVALID_OPCODE | Code::INVALID_FIELD)
    }

    /// Returns whether a retry of the command would fail, too (Do Not Retry).
    #[inline]
    pub const fn do_not_retry(self) -> bool {
        self.0 & Self::DO_NOT_RETRY != 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.code(), f)?;
        if self.has_more() {
            f.write_str(", more in the error log")?;
        }
        if self.do_not_retry() {
            f.write_str(", do not retry")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_splits() {
        for field in 0..=u16::MAX {
            let status = Status::from_wire(field);
            assert_eq!(status.get(), field >> 1);
            assert_eq!(status.is_success(), field & 0x0ffe == 0);
            assert_eq!(status.code().status_code(), ((field >> 1) & 0xff) as u8);
            assert_eq!(status.code().status_type(), ((field >> 9) & 7) as u8);
            assert_eq!(status.retry_delay_index(), ((field >> 12) & 3) as u8);
            assert_eq!(status.has_more(), field & 0x4000 != 0);
            assert_eq!(status.do_not_retry(), field & 0x8000 != 0);
        }
    }

    #[test]
    fn unsupported_is_told_from_a_failure() {
        for (field, unsupported) in [(0x4002, true), (0x2, true), (0x1, true), (0x6, false)] {
            let status = Status::from_wire(field << 1);
            assert_eq!(status.is_unsupported(), unsupported, "{field:#x}");
        }
    }

    #[test]
    fn host_made_status_keeps_its_code() {
        let status = Status::from_code(Code::HOST_PATH_ERROR);
        assert_eq!(status.get(), 0x370);
        assert_eq!(status.code(), Code::HOST_PATH_ERROR);
        assert_eq!(Status::from_code(Code::SUCCESS), Status::SUCCESS);
    }

    #[test]
    fn display() {
        let status = Status::from_wire((0x6000 | 0x281) << 1);
        assert_eq!(
            status.to_string(),
            "unrecovered read error (sct 0x2, sc 0x81), more in the error log, do not retry"
        );
        assert_eq!(Status::SUCCESS.to_string(), "success (sct 0x0, sc 0x00)");
    }
}
