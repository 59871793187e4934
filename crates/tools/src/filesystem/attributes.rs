//! What a file has beside its bytes, mode and owner (`xattr(7)`), for whatever takes its place.

use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

/// The most that Linux keeps of names, and of one value, in bytes.
const MOST_BYTES: usize = 64 * 1024;
/// Attributes of people and programs, and access lists. Others are the system's to give: what a program may do that runs
/// the file, for one, is not said of other bytes.
const KEPT: [&[u8]; 2] = [b"user.", b"system.posix_acl_access"];

/// Gives `new` the attributes of `old`, as far as the file system lets it: the content counts more.
pub(super) fn copy(old: impl AsFd, new: impl AsFd) {
    let mut names = vec![0; MOST_BYTES];
    let names = match flistxattr(&old, &mut names[..]) {
        Ok(length) => names.get(..length).unwrap_or_default(),
        Err(_) => return,
    };
    let names = names.split(|byte| *byte == 0).filter(|name| KEPT.iter().any(|kept| name.starts_with(kept)));
    let mut value = Vec::new();
    for name in names {
        value.resize(MOST_BYTES, 0);
        let copied = fgetxattr(&old, name, &mut value[..])
            .and_then(|length| fsetxattr(&new, name, value.get(..length).unwrap_or_default(), XattrFlags::empty()));
        match copied {
            // It was taken away meanwhile.
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => tracing::debug!(%error, name = %name.escape_ascii(), "an attribute of a replaced file is lost"),
        }
    }
}
