//! Which version a source says it is.

use std::fs;
use std::path::Path;

use crate::builds::error::BuildError;
use crate::builds::make::recipe::VersionMark;

/// Reads the version of the source in a folder: `17.11`, `19rc1`, `8.0.43`.
pub(crate) fn read(source: &Path, marks: &[VersionMark]) -> Result<String, BuildError> {
    let numbers: Vec<String> = marks
        .iter()
        .map(|mark| number(source, mark))
        .collect::<Result<_, _>>()?;
    Ok(numbers.join("."))
}

fn number(source: &Path, mark: &VersionMark) -> Result<String, BuildError> {
    let unfit = |problem: &str| {
        let files: Vec<String> = mark.files.iter().map(|f| f.display().to_string()).collect();
        BuildError::Usage(format!(
            "{} is no source of this engine: {} {problem}; give the folder with its top files",
            source.display(),
            files.join(" or ")
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(file: &str, after: &str) -> VersionMark {
        VersionMark {
            files: vec!["elsewhere".into(), file.into()],
            after: after.to_owned(),
        }
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
        let of = |marks: &[VersionMark]| read(dir.path(), marks).map_err(|e| e.to_string());
        let configure = mark("configure", "PACKAGE_VERSION='");
        assert_eq!(of(&[configure]).unwrap(), "19rc1");
        let numbers = [mark("v.h", "define MAJOR"), mark("v.h", "define MINOR")];
        assert_eq!(of(&numbers).unwrap(), "9.10");
        let error = of(&[mark("absent", "x")]).unwrap_err();
        assert!(
            error.contains("elsewhere or absent is not there"),
            "{error}"
        );
        let error = of(&[mark("v.h", "PATCH ")]).unwrap_err();
        assert!(error.contains("has no PATCH"), "{error}");
    }
}
