//! What a configuration names and what cannot be used on this machine. Whatever needs it says so by itself where it begins: a
//! turn its model, a tool its folder. This is for whoever wants to know before, so it looks at files and starts nothing.

use std::path::Path;

use super::{Loaded, Problem, Problems, endpoint};
use crate::Environment;
use crate::sources;

impl Loaded {
    /// What it names and what cannot be used as it stands; `None` where all can.
    pub fn unusable(&self, environment: &Environment) -> Option<Problems> {
        let missing = self.config.model.as_ref().and_then(|model| endpoint::missing(model.provider(), &self.endpoints));
        // What reading it only warned of, since it may matter to nobody who runs.
        let hinders = |warning: &Problem| {
            let is_left_out = || self.left_out.values().any(|why| why.contains(&warning.to_string()));
            missing.as_ref() == Some(&warning.text) || is_left_out()
        };
        let mut problems: Vec<Problem> = self.warnings.iter().filter(|warning| hinders(warning)).cloned().collect();
        self.roots(&mut problems);
        for file in self.mcp_files.iter().filter(|file| file.is_required || file.path.exists()) {
            let told = sources::unusable(&file.path, environment);
            problems.extend(told.into_iter().map(|text| self.problem(&["mcp", "files"], text)));
        }
        Problems::new(problems)
    }

    /// Folders that tools work in.
    fn roots(&self, problems: &mut Vec<Problem>) {
        let (files, commands) = (&self.config.tools.filesystem, &self.config.tools.command);
        let is_written = |tool: &str| self.written.contains_key(&format!("tools.{tool}.roots"));
        let all = [("filesystem", files.enabled, &files.roots), ("command", commands.enabled, &commands.roots)];
        for (tool, _, roots) in all.into_iter().filter(|(tool, is_enabled, _)| *is_enabled && is_written(tool)) {
            for (index, root) in roots.iter().enumerate() {
                if let Some(why) = why_not_a_folder(root) {
                    let text = format!("`tools.{tool}.roots[{index}]` is `{}`, which cannot be used: {why}", root.display());
                    problems.push(self.problem(&["tools", tool, "roots"], text));
                }
            }
        }
    }
}

fn why_not_a_folder(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some("it is not a folder".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}
