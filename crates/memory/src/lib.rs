//! What a program holds of the machine's memory: its allocator, which is mimalloc, told to give freed memory back to the system
//! soon; and what the system's loader needed of it.
//!
//! Not here: who uses it. A program names [`Allocator`] as its `#[global_allocator]` and calls [`give_back_soon`] first
//! thing in `main`; libraries allocate with what the program has. A server calls [`give_back_the_start`] once it serves.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod program;

use std::ffi::c_long;

use libmimalloc_sys::mi_option_t;

/// The allocator, to be a program's `#[global_allocator]`.
pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay` of `mimalloc.h`, for which the bindings have no name: milliseconds until freed pages go back to
/// the system.
const PURGE_DELAY: mi_option_t = 15;

/// Gives freed pages back to the system after ten milliseconds instead of a second, so that many streams that end leave little
/// behind, and what a turn frees is there for its next step: at once, a turn took a twentieth more processor. Call it before the
/// first thread is started.
pub fn give_back_soon() {
    const SOON: c_long = 10;
    // SAFETY: the option exists in the release that is built in (`Cargo.lock` holds its version), and setting it writes one
    // aligned word that mimalloc reads whenever pages are freed. No memory of ours is touched.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, SOON) }
}

/// Gives back what the start alone needed of the program's own constants. Where the system is another than 64-bit Linux nothing
/// happens.
pub fn give_back_the_start() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    program::let_go();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// The place of the option among mimalloc's is what a new release could change: a second is its default there,
    /// and no other option's beside it.
    #[test]
    fn the_option_that_is_set_is_the_one_that_delays() {
        // SAFETY: reads one word.
        let value = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };

        let before = value();
        give_back_soon();

        assert_eq!((before, value()), (1000, 10));
    }
}
