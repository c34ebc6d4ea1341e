//! Building the subjects: each distinct command once for all scenarios.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::needs::look_for_needs;
use super::{LabError, Settings};
use crate::scenario::Scenario;

/// Runs the scenarios' build commands, each distinct one once in its root; not those of scenarios that lack a program.
///
/// # Errors
///
/// [`LabError::Scenario`] where one fails, with what it said.
pub fn build(
    scenarios: &[Scenario],
    settings: &Settings,
    tell: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let wanted: BTreeSet<(&PathBuf, &String)> = scenarios
        .iter()
        .filter(|scenario| look_for_needs(scenario).is_ok())
        .filter_map(|scenario| Some((&scenario.root, scenario.build.as_ref()?)))
        .collect();
    for (root, command) in wanted {
        tell(command);
        let stderr = if settings.build_output { Stdio::inherit() } else { Stdio::piped() };
        let output = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .output()
            .map_err(|error| LabError::Lab(format!("cannot run the build `{command}`: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(LabError::Scenario(format!(
                "the build `{command}` in {} failed ({}):\n{}",
                root.display(),
                output.status,
                said.trim_end()
            )));
        }
    }
    Ok(())
}
