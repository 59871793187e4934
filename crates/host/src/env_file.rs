//! Files of variables, as `envFile` of other programs names them: `NAME=VALUE` in each line.

use std::path::Path;

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// These variables, after those of the file whose names they do not have.
///
/// # Errors
/// Why the file cannot be used, in words for people. Holds no value.
pub(crate) fn with(own: Vec<(String, String)>, file: Option<&Path>) -> Result<Vec<(String, String)>, String> {
    let Some(file) = file else { return Ok(own) };
    let failed = |why: String| format!("its env_file {} cannot be used: {why}", file.display());
    let mut variables = of(file).map_err(failed)?;
    variables.retain(|(name, _)| !own.iter().any(|(known, _)| known == name));
    variables.extend(own);
    Ok(variables)
}

/// The variables of a file.
///
/// # Errors
/// As [`with`], without the name of the file.
pub(crate) fn of(file: &Path) -> Result<Vec<(String, String)>, String> {
    let length = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if length > MAX_BYTES {
        return Err(format!("it is {length} bytes long, limit {MAX_BYTES}"));
    }
    read(&std::fs::read_to_string(file).map_err(|error| error.to_string())?)
}

/// The variables of a text; of one that is there twice, the last.
fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let pair = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let Some((name, value)) = pair.filter(|(name, _)| is_name(name)) else {
            return Err(format!("line {} is not NAME=VALUE", number + 1));
        };
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value_of(value)));
    }
    Ok(variables)
}

fn value_of(written: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some((value, _comment)) = written.strip_prefix(quote).and_then(|rest| rest.rsplit_once(quote)) {
            return if quote == '"' { value.replace("\\n", "\n").replace("\\\"", "\"") } else { value.to_owned() };
        }
    }
    written.split_once(" #").map_or(written, |(value, _comment)| value.trim_end()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_other_programs_read_them_and_ones_own_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".env");
        let text = "# a comment\n\nA=1\nexport B = two words # why\nC='it # is'\nD=\"a\\nb\"\nE=\nA=2\nOWN=theirs\n";
        std::fs::write(&file, text).unwrap();
        let own = vec![("OWN".to_owned(), "mine".to_owned())];
        let expected = [("B", "two words"), ("C", "it # is"), ("D", "a\nb"), ("E", ""), ("A", "2"), ("OWN", "mine")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(with(own.clone(), Some(&file)).unwrap(), expected);
        assert_eq!(with(own.clone(), None).unwrap(), own);
        std::fs::write(&file, "A=1\nsecret words\n").unwrap();
        let why = format!("its env_file {} cannot be used: line 2 is not NAME=VALUE", file.display());
        assert_eq!(with(own, Some(&file)), Err(why));
    }
}
