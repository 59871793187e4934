//! What the loader alone needed of the program: the table of places that it wrote addresses to, a megabyte of a program with many
//! constants. It was read to its end before `main`, and nobody looks at it again.

use std::ffi::{c_int, c_void};
use std::ops::Range;

/// Tags of the dynamic section (System V ABI, chapter 5).
const DT_NULL: i64 = 0;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;

/// An entry of the dynamic section, as 64-bit programs have it.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// Lets go of the pages that hold the table and nothing else.
pub(crate) fn let_go() {
    if let Some(Range { start, end }) = table() {
        // SAFETY: whole pages of a part of the file that is mapped without the right to write, so they are as they are in the
        // file, and come from there again when they are touched. Where the system refuses, they stay.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(start), end - start, libc::MADV_DONTNEED) };
    }
}

/// The pages of the table; `None` where the program has none, or the system is not as it is looked for here.
fn table() -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    // SAFETY: the callback fits its type, is called before this returns, and takes what is given to it here.
    unsafe { libc::dl_iterate_phdr(Some(of_object), (&raw mut found).cast()) };
    found
}

/// Called with the program first; 1 ends it there.
unsafe extern "C" fn of_object(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader hands out an object that lives as long as the call, with as many headers as it says; `found` is that of
    // `table`.
    let (base, headers, found) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
        (object.dlpi_addr, headers, &mut *found.cast::<Option<Range<usize>>>())
    };
    *found = table_of(base, headers);
    1
}

fn table_of(base: u64, headers: &[libc::Elf64_Phdr]) -> Option<Range<usize>> {
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
    let (mut address, mut bytes) = (None, None);
    let mut entry: *const Dynamic = std::ptr::with_exposed_provenance(usize::try_from(base + dynamic.p_vaddr).ok()?);
    loop {
        // SAFETY: the section is mapped, aligned, and ends with `DT_NULL`.
        let Dynamic { tag, value } = unsafe { entry.read() };
        match tag {
            DT_NULL => break,
            DT_RELA => address = Some(value),
            DT_RELASZ => bytes = Some(value),
            _ => {}
        }
        // SAFETY: as above; it was not the last.
        entry = unsafe { entry.add(1) };
    }
    // Some loaders write the address itself over the place in the file.
    let address = address.map(|address| if address < base { base + address } else { address })?;
    // SAFETY: reads a constant of the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    let (start, end) = (address.next_multiple_of(page), (address + bytes?) / page * page);
    let is_within = |header: &libc::Elf64_Phdr| {
        let begin = base + header.p_vaddr;
        begin <= start && end <= begin + header.p_memsz
    };
    let is_constant = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0;
    (start < end && headers.iter().filter(is_constant).any(is_within))
        .then_some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// How many of these pages are in memory (`proc_pid_pagemap(5)`, bit 63).
    fn present(pages: &Range<usize>) -> usize {
        let map = std::fs::File::open("/proc/self/pagemap").unwrap();
        let is_present = |address: &usize| {
            let mut word = [0; 8];
            map.read_exact_at(&mut word, u64::try_from(address / 4096 * 8).unwrap()).unwrap();
            u64::from_ne_bytes(word) >> 63 == 1
        };
        pages.clone().step_by(4096).filter(is_present).count()
    }

    #[test]
    fn the_loaders_table_goes_and_is_there_again_when_it_is_looked_at() {
        let pages = table().expect("a program that can be loaded anywhere has one");
        // SAFETY: the pages are mapped and nobody writes to them.
        let read = || {
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(pages.start), pages.len()) }.to_vec()
        };
        let before = read();
        assert!(present(&pages) > 0);

        let_go();

        assert_eq!(present(&pages), 0);
        assert_eq!(read(), before);
    }
}
