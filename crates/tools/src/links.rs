//! The links on the way to a path: whoever puts something else in the place of one has what the path leads to replaced.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How many links the system follows for one path.
const MOST: usize = 40;

/// Where the links lie that are followed on the way to `path`, in the order in which they are met, each in a folder without links. What
/// is not there has none.
pub(crate) fn passed(path: &Path) -> Vec<PathBuf> {
    let parts = |path: &Path| path.iter().rev().map(OsString::from).collect::<Vec<_>>();
    let mut links = Vec::new();
    let mut at = PathBuf::new();
    let mut rest = parts(path);
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
        } else if part != "." {
            // The root begins anew.
            let place = at.join(&part);
            match std::fs::read_link(&place) {
                Ok(target) if links.len() < MOST => {
                    links.push(place);
                    rest.extend(parts(&target));
                }
                Ok(_) | Err(_) => at = place,
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::passed;

    #[test]
    fn every_link_on_the_way_is_named_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/conf")).unwrap();
        std::fs::create_dir_all(base.join("keys/2024")).unwrap();
        std::fs::write(base.join("keys/2024/token"), "").unwrap();
        symlink("real/conf", base.join("config")).unwrap();
        symlink("2024", base.join("keys/data")).unwrap();
        symlink("data/token", base.join("keys/token")).unwrap();
        symlink("../../keys/./token", base.join("real/conf/key")).unwrap();
        symlink(base.join("round"), base.join("round")).unwrap();
        let of = |path: &str| passed(&base.join(path));
        assert_eq!(of("config/key"), ["config", "real/conf/key", "keys/token", "keys/data"].map(|link| base.join(link)));
        assert_eq!(of("config/missing/file"), [base.join("config")]);
        assert_eq!(of("keys/2024/token"), Vec::<std::path::PathBuf>::new());
        assert_eq!(of("round").first(), Some(&base.join("round")));
    }
}
