//! The HTTP provider against a server that says what each test wants.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod costs;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod mended;
#[cfg(test)]
mod probes;
#[cfg(test)]
mod support;
