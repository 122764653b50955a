//! Which version a source says it is.

use std::fs;
use std::path::Path;

use crate::builds::error::BuildError;
use crate::builds::make::recipe::{MakeRecipe, VersionMark};

/// Reads the version of the source in a folder: `17.11`, `19rc1`, `8.0.43`. `origin` is what the
/// user calls the source, for errors.
pub(crate) fn read(source: &Path, origin: &str, how: &MakeRecipe) -> Result<String, BuildError> {
    if let Some(missing) = how.holds.iter().find(|path| !source.join(path).exists()) {
        let problem = format!("{} is not there", missing.display());
        return Err(wrong(origin, &problem));
    }
    let numbers = how.version.iter().map(|mark| number(source, origin, mark));
    Ok(numbers.collect::<Result<Vec<_>, _>>()?.join("."))
}

fn number(source: &Path, origin: &str, mark: &VersionMark) -> Result<String, BuildError> {
    let unfit = |problem: &str| {
        let files: Vec<String> = mark.files.iter().map(|f| f.display().to_string()).collect();
        wrong(origin, &format!("{} {problem}", files.join(" or ")))
    };
    let file = mark.files.iter().map(|file| source.join(file));
    let path = file
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| unfit("is not there"))?;
    let bytes = fs::read(&path).map_err(BuildError::io("read", &path))?;
    let text = String::from_utf8_lossy(&bytes);
    let rest = text
        .split_once(&mark.after)
        .map(|(_, rest)| rest.trim_start());
    let number: String = rest
        .unwrap_or_default()
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '.')
        .collect();
    match number.is_empty() {
        true => Err(unfit(&format!("has no {}", mark.after.trim()))),
        false => Ok(number),
    }
}

fn wrong(origin: &str, problem: &str) -> BuildError {
    BuildError::Usage(format!(
        "{origin} is not a source of this engine that the recipe knows: {problem}; give the \
        folder with the engine's top files"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(holds: &[&str], marks: &[(&str, &str)]) -> MakeRecipe {
        let marks = marks.iter().map(|(file, after)| {
            format!("{{ files = [\"elsewhere\", {file:?}], after = {after:?} }}")
        });
        let marks = marks.collect::<Vec<_>>().join(", ");
        let text = format!(
            "flags = \"o2\"\nprefix = \"/opt/x\"\nfeatures = \"\"\nobjects = 1\nminutes = 1\nneeds = []\n\
            steps = []\nholds = {holds:?}\nversion = [{marks}]"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn versions_are_read_from_the_source() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("configure"), "#\nPACKAGE_VERSION='19rc1'\n").unwrap();
        fs::write(
            dir.path().join("v.h"),
            "#define MAJOR 9\n#define MINOR 10 // x\n",
        )
        .unwrap();
        fs::create_dir(dir.path().join("storage")).unwrap();
        let of = |holds: &[&str], marks: &[(&str, &str)]| {
            read(dir.path(), "my/folder", &how(holds, marks)).map_err(|e| e.to_string())
        };
        let configure = [("configure", "PACKAGE_VERSION='")];
        assert_eq!(of(&[], &configure).unwrap(), "19rc1");
        let numbers = [("v.h", "define MAJOR"), ("v.h", "define MINOR")];
        assert_eq!(of(&["storage"], &numbers).unwrap(), "9.10");
        for (holds, mark, wanted) in [
            (&[][..], ("absent", "x"), "elsewhere or absent is not there"),
            (&[], ("v.h", "PATCH "), "v.h has no PATCH"),
            (&["storage/maria"], numbers[0], "storage/maria is not there"),
        ] {
            let error = of(holds, &[mark]).unwrap_err();
            assert!(error.contains(wanted), "{error}");
            assert!(error.starts_with("my/folder is not a source of"), "{error}");
        }
    }
}
