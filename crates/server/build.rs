//! Has the server built again when the page was made again: files that are new are not seen otherwise.

fn main() {
    println!("cargo:rerun-if-changed=../../web/made");
}
