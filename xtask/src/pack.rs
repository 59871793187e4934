//! The files of the page as gzip, beside the brotli that `web/build.mjs` makes, and the most that all of them may take together.

use std::fs;
use std::path::{Path, PathBuf};

use zopfli::{Format, Options};

/// The most that all files of the page may be as gzip, in bytes: what every browser takes, also where it does not take brotli.
const MOST_BYTES: usize = 160 * 1024;

/// Writes the gzip of each file at or below `folder` beside it, and says how large the page is.
///
/// # Errors
///
/// Where a file cannot be read or written, or the page is too large.
pub(crate) fn pack(folder: &Path) -> Result<String, String> {
    let (compressed, plain): (Vec<PathBuf>, Vec<PathBuf>) =
        files_below(folder)?.into_iter().partition(|path| path.extension().is_some_and(|kind| kind == "br"));
    let mut gzip = 0;
    for path in &plain {
        let packed = as_gzip(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        let beside = PathBuf::from(format!("{}.gz", path.display()));
        fs::write(&beside, &packed).map_err(|error| format!("{}: {error}", beside.display()))?;
        gzip += packed.len();
    }
    let mut brotli = 0;
    for path in &compressed {
        brotli += read(path)?.len();
    }
    told(plain.len(), gzip, brotli)
}

/// How large a page is, or that it is too large.
fn told(files: usize, gzip: usize, brotli: usize) -> Result<String, String> {
    let counted = format!("{files} files, {gzip} bytes as gzip (limit {MOST_BYTES}), {brotli} as brotli");
    if gzip > MOST_BYTES { Err(format!("too large: {counted}")) } else { Ok(counted) }
}

/// The smallest gzip of a text: it is made once and sent often.
fn as_gzip(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    zopfli::compress(Options::default(), Format::Gzip, text, &mut packed)?;
    Ok(packed)
}

/// Whether two folders hold the same files; not where one of them is not there.
pub(crate) fn are_same(left: &Path, right: &Path) -> Result<bool, String> {
    if !left.is_dir() || !right.is_dir() {
        return Ok(false);
    }
    let below = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        Ok(files_below(folder)?.iter().filter_map(|path| path.strip_prefix(folder).ok().map(Path::to_owned)).collect())
    };
    let names = below(left)?;
    if names != below(right)? {
        return Ok(false);
    }
    for name in names {
        if read(&left.join(&name))? != read(&right.join(&name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// All files at or below a folder, by their names.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() { found.extend(files_below(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_of_more_than_160_kib_as_gzip_is_refused() {
        assert_eq!(super::told(2, 163_840, 9), Ok("2 files, 163840 bytes as gzip (limit 163840), 9 as brotli".to_owned()));
        let refused = Err("too large: 2 files, 163841 bytes as gzip (limit 163840), 9 as brotli".to_owned());
        assert_eq!(super::told(2, 163_841, 9), refused);
    }

    #[test]
    fn each_file_gets_its_gzip_and_folders_are_compared_by_what_they_hold() {
        let folder = std::env::temp_dir().join(format!("turnwright-pack-{}", std::process::id()));
        let (one, other) = (folder.join("one"), folder.join("other"));
        for made in [&one, &other] {
            std::fs::create_dir_all(made.join("below")).unwrap();
            std::fs::write(made.join("below/a.js"), "export const a = 1;\n".repeat(50)).unwrap();
            std::fs::write(made.join("below/a.js.br"), "as brotli").unwrap();
        }
        let told = super::pack(&one).unwrap();
        let gzip = std::fs::read(one.join("below/a.js.gz")).unwrap();
        assert_eq!(told, format!("1 files, {} bytes as gzip (limit 163840), 9 as brotli", gzip.len()));
        assert_eq!(gzip.get(..2), Some([0x1f, 0x8b].as_slice()));
        assert_eq!(super::are_same(&one, &other), Ok(false));
        super::pack(&other).unwrap();
        assert_eq!(super::are_same(&one, &other), Ok(true));
        std::fs::write(other.join("below/a.js"), "export const a = 2;\n").unwrap();
        assert_eq!(super::are_same(&one, &other), Ok(false));
        assert_eq!(super::are_same(&one, &folder.join("none")), Ok(false));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
