//! The program's own code and constants, as the system mapped them from its file.

use std::ffi::{c_int, c_void};

/// Lets go of the pages of the program that are as they are in its file.
pub(crate) fn let_go() {
    // SAFETY: the callback fits its type, and is called before this returns.
    unsafe { libc::dl_iterate_phdr(Some(of_object), std::ptr::null_mut()) };
}

/// Called with the program first; 1 ends it there.
unsafe extern "C" fn of_object(object: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the loader hands out an object that lives as long as the call, with as many headers as it says.
    let (base, headers) = unsafe {
        let object = &*object;
        (object.dlpi_addr, std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)))
    };
    // SAFETY: reads a constant of the system.
    let Ok(page) = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return 1 };
    let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    for header in loaded.filter(|header| header.p_flags & libc::PF_W == 0) {
        let begin = (base + header.p_vaddr).next_multiple_of(page);
        let end = (base + header.p_vaddr + header.p_memsz) / page * page;
        let (Ok(address), Ok(length)) = (usize::try_from(begin), usize::try_from(end.saturating_sub(begin))) else { continue };
        // SAFETY: whole pages within a part of the file that is mapped without the right to write, so they are as they are in the
        // file, and come from there again when they are touched. Where the system refuses, they stay.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(address), length, libc::MADV_DONTNEED) };
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of this program's code and constants, in memory, in KiB.
    fn resident_kib() -> u64 {
        let program = std::env::current_exe().unwrap();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_of_it = false;
        let mut sum = 0;
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("Rss:") if is_of_it => sum += words.next().unwrap().parse::<u64>().unwrap(),
                Some(word) if !word.ends_with(':') => {
                    is_of_it = !line.contains(" rw") && line.ends_with(program.to_str().unwrap());
                }
                Some(_) | None => {}
            }
        }
        sum
    }

    static CONSTANTS: [u8; 4 << 20] = [7; 4 << 20];

    #[test]
    fn what_was_read_once_goes_and_comes_back() {
        let read = || CONSTANTS.iter().step_by(512).map(|byte| u64::from(std::hint::black_box(*byte))).sum::<u64>();
        let sum = read();
        let before = resident_kib();

        let_go();

        let after = resident_kib();
        assert!(after + (2 << 10) < before, "{before} KiB, then {after} KiB");
        assert_eq!(read(), sum);
    }
}
