// SPDX-License-Identifier: GPL-2.0

//! Status codes and their texts.
//!
//! Source: NVMe Base 2.3, sections 4.2.3.1 to 4.2.3.4, and the I/O command set specifications.

use core::fmt;

/// Status code type (SCT) and status code (SC) as one number: `SCT << 8 | SC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(u16);

impl Code {
    #[inline]
    pub(super) const fn new(code: u16) -> Self {
        Self(code)
    }

    /// Returns type and code as one number.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the status code type.
    #[inline]
    pub const fn status_type(self) -> u8 {
        (self.0 >> 8) as u8 & 7
    }

    /// Returns whether the code is about the path between host and namespace (SCT 3h).
    #[inline]
    pub const fn is_path_related(self) -> bool {
        self.status_type() == 3
    }

    /// Returns the status code.
    #[inline]
    pub const fn status_code(self) -> u8 {
        (self.0 & 0xff) as u8
    }
}

/// Defines each code once: constant, value, and text for people.
macro_rules! codes {
    ($($constant:ident = $value:literal, $name:literal;)*) => {
        impl Code {
            $(
                #[doc = concat!("Code ", stringify!($value), ": ", $name, ".")]
                pub const $constant: Self = Self($value);
            )*

            /// Returns the text of the code with its meaning in the NVM command set; `None` if it
            /// is unknown.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($name),)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        const ALL: &[(u16, &str)] = &[$(($value, $name)),*];
    };
}

codes! {
    // Generic.
    SUCCESS = 0x000, "success";
    INVALID_OPCODE = 0x001, "invalid command opcode";
    INVALID_FIELD = 0x002, "invalid field in command";
    COMMAND_ID_CONFLICT = 0x003, "command identifier already in use";
    DATA_TRANSFER_ERROR = 0x004, "data transfer error";
    POWER_LOSS = 0x005, "aborted by a power loss notification";
    INTERNAL_ERROR = 0x006, "internal error";
    ABORT_REQUESTED = 0x007, "abort requested";
    ABORTED_QUEUE_DELETED = 0x008, "aborted because the queue was deleted";
    FUSED_FAILED = 0x009, "aborted because the fused command failed";
    FUSED_MISSING = 0x00a, "aborted because the fused command is missing";
    INVALID_NAMESPACE = 0x00b, "invalid namespace or format";
    COMMAND_SEQUENCE_ERROR = 0x00c, "command sequence error";
    INVALID_SGL_SEGMENT = 0x00d, "invalid SGL segment descriptor";
    INVALID_SGL_COUNT = 0x00e, "invalid number of SGL descriptors";
    INVALID_DATA_SGL_LENGTH = 0x00f, "invalid data SGL length";
    INVALID_METADATA_SGL_LENGTH = 0x010, "invalid metadata SGL length";
    INVALID_SGL_TYPE = 0x011, "invalid SGL descriptor type";
    INVALID_MEMORY_BUFFER_USE = 0x012, "invalid use of the controller memory buffer";
    INVALID_PRP_OFFSET = 0x013, "invalid PRP offset";
    ATOMIC_UNIT_EXCEEDED = 0x014, "atomic write unit exceeded";
    OPERATION_DENIED = 0x015, "operation denied";
    INVALID_SGL_OFFSET = 0x016, "invalid SGL offset";
    HOST_ID_FORMAT = 0x018, "inconsistent host identifier format";
    KEEP_ALIVE_EXPIRED = 0x019, "keep alive timer expired";
    INVALID_KEEP_ALIVE = 0x01a, "invalid keep alive timeout";
    ABORTED_PREEMPTED = 0x01b, "aborted by a preempting reservation";
    SANITIZE_FAILED = 0x01c, "sanitize failed";
    SANITIZE_IN_PROGRESS = 0x01d, "sanitize in progress";
    INVALID_SGL_GRANULARITY = 0x01e, "invalid SGL data block granularity";
    NOT_FOR_MEMORY_BUFFER_QUEUE = 0x01f, "command not supported for a queue in controller memory";
    NAMESPACE_WRITE_PROTECTED = 0x020, "namespace is write protected";
    COMMAND_INTERRUPTED = 0x021, "command interrupted";
    TRANSIENT_TRANSPORT_ERROR = 0x022, "transient transport error";
    ADMIN_MEDIA_NOT_READY = 0x024, "media not ready for the admin command";
    INVALID_COMMAND_SET = 0x02c, "invalid I/O command set";
    LBA_OUT_OF_RANGE = 0x080, "LBA out of range";
    CAPACITY_EXCEEDED = 0x081, "capacity exceeded";
    NAMESPACE_NOT_READY = 0x082, "namespace not ready";
    RESERVATION_CONFLICT = 0x083, "reservation conflict";
    FORMAT_IN_PROGRESS = 0x084, "format in progress";

    // Command specific.
    INVALID_COMPLETION_QUEUE = 0x100, "invalid completion queue";
    INVALID_QUEUE_ID = 0x101, "invalid queue identifier";
    INVALID_QUEUE_SIZE = 0x102, "invalid queue size";
    ABORT_LIMIT_EXCEEDED = 0x103, "too many abort commands";
    ASYNC_EVENT_LIMIT_EXCEEDED = 0x105, "too many asynchronous event requests";
    INVALID_FIRMWARE_SLOT = 0x106, "invalid firmware slot";
    INVALID_FIRMWARE_IMAGE = 0x107, "invalid firmware image";
    INVALID_INTERRUPT_VECTOR = 0x108, "invalid interrupt vector";
    INVALID_LOG_PAGE = 0x109, "invalid log page";
    INVALID_FORMAT = 0x10a, "invalid format";
    FIRMWARE_NEEDS_CONVENTIONAL_RESET = 0x10b, "firmware activation needs a conventional reset";
    INVALID_QUEUE_DELETION = 0x10c, "invalid queue deletion";
    FEATURE_NOT_SAVEABLE = 0x10d, "feature is not saveable";
    FEATURE_NOT_CHANGEABLE = 0x10e, "feature is not changeable";
    FEATURE_NOT_PER_NAMESPACE = 0x10f, "feature is not namespace specific";
    FIRMWARE_NEEDS_SUBSYSTEM_RESET = 0x110, "firmware activation needs a subsystem reset";
    FIRMWARE_NEEDS_RESET = 0x111, "firmware activation needs a controller reset";
    FIRMWARE_NEEDS_MAXIMUM_TIME = 0x112, "firmware activation needs more than the maximum time";
    FIRMWARE_PROHIBITED = 0x113, "firmware activation prohibited";
    OVERLAPPING_RANGE = 0x114, "overlapping range";
    INSUFFICIENT_CAPACITY = 0x115, "insufficient capacity for the namespace";
    NAMESPACE_ID_UNAVAILABLE = 0x116, "namespace identifier unavailable";
    NAMESPACE_ALREADY_ATTACHED = 0x118, "namespace already attached";
    NAMESPACE_IS_PRIVATE = 0x119, "namespace is private";
    NAMESPACE_NOT_ATTACHED = 0x11a, "namespace not attached";
    THIN_PROVISIONING_UNSUPPORTED = 0x11b, "thin provisioning not supported";
    INVALID_CONTROLLER_LIST = 0x11c, "invalid controller list";
    SELF_TEST_IN_PROGRESS = 0x11d, "device self-test in progress";
    BOOT_PARTITION_WRITE_PROHIBITED = 0x11e, "boot partition write prohibited";
    INVALID_CONTROLLER_ID = 0x11f, "invalid controller identifier";
    INVALID_SECONDARY_STATE = 0x120, "invalid secondary controller state";
    INVALID_RESOURCE_COUNT = 0x121, "invalid number of controller resources";
    INVALID_RESOURCE_ID = 0x122, "invalid resource identifier";
    SANITIZE_PROHIBITED = 0x123, "sanitize prohibited while persistent memory is on";
    INVALID_ANA_GROUP = 0x124, "invalid ANA group identifier";
    ANA_ATTACH_FAILED = 0x125, "ANA attach failed";

    // Specific to a command set: NVM, and what has the same meaning in all.
    CONFLICTING_ATTRIBUTES = 0x180, "conflicting attributes";
    INVALID_PROTECTION_INFORMATION = 0x181, "invalid protection information";
    READ_ONLY_RANGE = 0x182, "write to a read-only range";
    COMMAND_SIZE_EXCEEDED = 0x183, "command size limit exceeded";
    DISCOVERY_RESTART = 0x190, "discovery log changed, read it again";
    AUTHENTICATION_REQUIRED = 0x191, "authentication required";
    ZONE_BOUNDARY_ERROR = 0x1b8, "zone boundary error";
    ZONE_FULL = 0x1b9, "zone is full";
    ZONE_READ_ONLY = 0x1ba, "zone is read-only";
    ZONE_OFFLINE = 0x1bb, "zone is offline";
    ZONE_INVALID_WRITE = 0x1bc, "invalid write to a zone";
    ZONE_TOO_MANY_ACTIVE = 0x1bd, "too many active zones";
    ZONE_TOO_MANY_OPEN = 0x1be, "too many open zones";
    ZONE_INVALID_TRANSITION = 0x1bf, "invalid zone state transition";

    // Media and data integrity.
    WRITE_FAULT = 0x280, "write fault";
    UNRECOVERED_READ_ERROR = 0x281, "unrecovered read error";
    GUARD_CHECK_ERROR = 0x282, "end-to-end guard check error";
    APPLICATION_TAG_CHECK_ERROR = 0x283, "end-to-end application tag check error";
    REFERENCE_TAG_CHECK_ERROR = 0x284, "end-to-end reference tag check error";
    COMPARE_FAILURE = 0x285, "compare failure";
    ACCESS_DENIED = 0x286, "access denied";
    UNWRITTEN_BLOCK = 0x287, "deallocated or unwritten block";

    // Path related.
    INTERNAL_PATH_ERROR = 0x300, "internal path error";
    ANA_PERSISTENT_LOSS = 0x301, "asymmetric access persistently lost";
    ANA_INACCESSIBLE = 0x302, "asymmetric access inaccessible";
    ANA_TRANSITION = 0x303, "asymmetric access in transition";
    CONTROLLER_PATH_ERROR = 0x360, "controller path error";
    HOST_PATH_ERROR = 0x370, "host path error";
    HOST_ABORTED = 0x371, "aborted by the host";
}

/// Codes of the Connect command. For other commands the same values have other meanings.
impl Code {
    /// Connect: the target does not support the record format.
    pub const CONNECT_FORMAT: Self = Self(0x180);
    /// Connect: the controller is busy or not available.
    pub const CONNECT_BUSY: Self = Self(0x181);
    /// Connect: a parameter is invalid; the result names it.
    pub const CONNECT_INVALID_PARAMETER: Self = Self(0x182);
    /// Connect: the host must restart discovery.
    pub const CONNECT_RESTART_DISCOVERY: Self = Self(0x183);
    /// Connect: the host is not allowed to access the subsystem.
    pub const CONNECT_INVALID_HOST: Self = Self(0x184);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (sct {:#x}, sc {:#04x})",
            self.name().unwrap_or("unknown status"),
            self.status_type(),
            self.status_code()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_order_and_within_eleven_bits() {
        assert!(ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(ALL.iter().all(|(value, _)| *value <= 0x7ff));
    }

    #[test]
    fn names_are_unique_and_found() {
        for (index, (value, name)) in ALL.iter().enumerate() {
            assert_eq!(Code::new(*value).name(), Some(*name));
            assert!(
                !ALL[..index].iter().any(|(_, other)| other == name),
                "{name}"
            );
        }
        let named = (0..0x800).filter(|value| Code::new(*value).name().is_some());
        assert_eq!(named.count(), ALL.len());
    }

    #[test]
    fn display() {
        assert_eq!(
            Code::LBA_OUT_OF_RANGE.to_string(),
            "LBA out of range (sct 0x0, sc 0x80)"
        );
        assert_eq!(
            Code::new(0x7ff).to_string(),
            "unknown status (sct 0x7, sc 0xff)"
        );
    }
}
