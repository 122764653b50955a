//! Fetching a package with its ordinary client, which brings its own configuration: hosts, mirrors
//! and proxies are the user's business.

use std::path::Path;

use crate::builds::error::BuildError;
use crate::builds::fetch::fetcher::{Fetched, Fetcher};
use crate::builds::fetch::maven::Maven;
use crate::builds::fetch::{apt, cargo, npm};
use crate::builds::progress::Watch;
use crate::builds::recipes::recipe::Package;

/// The clients of this machine.
pub(crate) struct Clients {
    pub maven: Maven,
}

impl Fetcher for Clients {
    fn fetch(
        &self,
        package: &Package,
        wanted: Option<&str>,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        match package {
            Package::Mvn { artifact } => self.maven.fetch(artifact, folder, watch),
            Package::Npm { package } => npm::fetch(package, folder, watch),
            Package::Apt {
                suite,
                packages,
                also,
                has_security,
            } => {
                let request = apt::Request {
                    suite,
                    packages,
                    also,
                    has_security: *has_security,
                    main: package.main_package(),
                    wanted,
                };
                apt::fetch(&request, folder, watch)
            }
            Package::AptSource {
                suite,
                name,
                has_security,
            } => {
                let request = apt::SourceRequest {
                    suite,
                    name,
                    has_security: *has_security,
                    wanted,
                };
                apt::fetch_source(&request, folder, watch)
            }
            Package::Cargo {
                package,
                file,
                sha256,
            } => {
                let request = cargo::Request {
                    package,
                    file,
                    sha256,
                };
                cargo::fetch(&request, folder, watch)
            }
        }
    }
}
