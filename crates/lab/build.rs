//! Has cargo build the crate again when a shipped file comes or goes: it sees changes of the files
//! that are there by itself.

fn main() {
    for folder in ["plans", "configs", "builds"] {
        println!("cargo:rerun-if-changed=../../{folder}");
    }
}
