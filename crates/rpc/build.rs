//! Compiles `store.proto` to Rust, without `protoc`.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/store.proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_source_info(true).include_imports(true).open_files(["store.proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("expected OUT_DIR, found none")?);
    // For the reflection service.
    std::fs::write(out.join("store.descriptor"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure()
        .bytes(".")
        // Encoded without copying rows, and decoded into one buffer.
        .extern_path(".nuthatch.store.v1.ScanResponse", "crate::messages::rows::Rows")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
