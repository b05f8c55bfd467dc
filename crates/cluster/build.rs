//! Compiles `etcd.proto` to Rust, without `protoc`, for the feature `etcd`.

#[cfg(not(feature = "etcd"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "etcd")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/etcd.proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_source_info(true).include_imports(true).open_files(["etcd.proto"])?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
