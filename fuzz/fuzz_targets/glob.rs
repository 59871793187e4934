//! Any glob compiles or says why not, and tells of any path whether it fits. Glob and path are parted by a zero byte.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use turnwright_tools::PathGlob;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0).map(String::from_utf8_lossy);
    let (Some(glob), Some(path)) = (parts.next(), parts.next()) else { return };
    for ignore_case in [false, true] {
        if let Ok(glob) = PathGlob::new(&glob, ignore_case) {
            glob.fits(Path::new(&*path));
        }
    }
});
