//! An image with the binary, the libraries that it is linked with, and nothing else: no shell, no user but its own.
//!
//! It is written as an OCI layout with the manifest that `docker load` reads beside it, so that no engine is needed to make
//! it. Where the binary is linked statically there are no libraries to put in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{VERSION, copy, make_folder, pack, run_program, said, write};

/// Nobody's number, as distroless images have it.
const USER: &str = "65532";
/// Certificates of authorities, where a system keeps them; the first that is there is put in.
const AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Makes the image in `work`, and the file of it.
pub(super) fn make(binary: &Path, work: &Path, (target, time): (&str, &str), to: &Path) -> Result<(), String> {
    let root = work.join("root");
    put_files(binary, &root)?;
    let layer = work.join("layer.tar");
    pack_layer(&root, time, &layer)?;
    let blobs = work.join("layout/blobs/sha256");
    make_folder(&blobs)?;
    let layer = put_blob(&layer, &blobs)?;
    let machine = match target.split('-').next() {
        Some("x86_64") => "amd64",
        Some("aarch64") => "arm64",
        other => return Err(format!("images are not made for {}", other.unwrap_or_default())),
    };
    let config = put_text(work, &blobs, &config(machine, &layer.digest))?;
    let manifest = format!(
        "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":{},\"layers\":[{}]}}",
        config.described("application/vnd.oci.image.config.v1+json", ""),
        layer.described("application/vnd.oci.image.layer.v1.tar", ""),
    );
    let manifest = put_text(work, &blobs, &manifest)?;
    let layout = work.join("layout");
    let name = format!("turnwright:{VERSION}");
    let annotation = format!(
        ",\"annotations\":{{\"io.containerd.image.name\":\"docker.io/library/{name}\",\"org.opencontainers.image.ref.name\":\"{VERSION}\"}}"
    );
    let described = manifest.described("application/vnd.oci.image.manifest.v1+json", &annotation);
    write(&layout.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}")?;
    write(
        &layout.join("index.json"),
        &format!(
            "{{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\",\"manifests\":[{described}]}}"
        ),
    )?;
    write(
        &layout.join("manifest.json"),
        &format!(
            "[{{\"Config\":\"blobs/sha256/{}\",\"RepoTags\":[\"{name}\"],\"Layers\":[\"blobs/sha256/{}\"]}}]",
            config.digest, layer.digest
        ),
    )?;
    pack(&layout, ".", time, to)
}

/// What the image has in it.
fn put_files(binary: &Path, root: &Path) -> Result<(), String> {
    for folder in ["usr/bin", "etc/ssl/certs", "data", "tmp"] {
        make_folder(&root.join(folder))?;
    }
    let program = root.join("usr/bin/turnwright");
    copy(binary, &program)?;
    run_program(Command::new("chmod").arg("755").arg(&program))?;
    for library in libraries(binary)? {
        let place = root.join(library.strip_prefix("/").unwrap_or(&library));
        make_folder(place.parent().unwrap_or(root))?;
        copy(&library, &place)?;
    }
    write(&root.join("etc/passwd"), &format!("turnwright:x:{USER}:{USER}::/data:/\n"))?;
    write(&root.join("etc/group"), &format!("turnwright:x:{USER}:\n"))?;
    write(&root.join("etc/nsswitch.conf"), "hosts: files dns\n")?;
    match AUTHORITIES.iter().map(Path::new).find(|file| file.is_file()) {
        Some(authorities) => copy(authorities, &root.join("etc/ssl/certs/ca-certificates.crt")),
        None => Err("there are no certificates of authorities to put into the image; install ca-certificates".to_owned()),
    }
}

/// The libraries that a binary is linked with, and what loads them; none where it is linked statically.
fn libraries(binary: &Path) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("ldd").arg(binary).output().map_err(|error| format!("`ldd` cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return if why.contains("not a dynamic executable") { Ok(Vec::new()) } else { Err(why.trim().to_owned()) };
    }
    if let Some(missing) = text.lines().find(|line| line.contains("not found")) {
        return Err(format!("a library is missing: {}", missing.trim()));
    }
    // `libc.so.6 => /lib/libc.so.6 (0x…)`, and the loader by its path alone.
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}

/// A tar of all files; what it writes to is its user's.
fn pack_layer(root: &Path, time: &str, to: &Path) -> Result<(), String> {
    run_program(Command::new("chmod").arg("1777").arg(root.join("tmp")))?;
    run_program(Command::new("chmod").arg("700").arg(root.join("data")))?;
    let tar = |owner: &str, how: &str, paths: &[&str]| {
        let mut command = Command::new("tar");
        command.args(["--sort=name", "--numeric-owner", "--format=gnu", &format!("--mtime=@{time}")]);
        command.args([format!("--owner={owner}"), format!("--group={owner}")]).arg("-C").arg(root).arg(how).arg(to);
        run_program(command.args(paths))
    };
    tar("0", "-cf", &["etc", "tmp", "usr"])?;
    // Where the loader and the libraries are depends on the system that built it.
    for folder in ["lib", "lib64"].into_iter().filter(|folder| root.join(folder).exists()) {
        tar("0", "-rf", &[folder])?;
    }
    tar(USER, "-rf", &["data"])
}

/// A part of the image, by the hash of its bytes.
struct Blob {
    digest: String,
    size: u64,
}

impl Blob {
    fn described(&self, kind: &str, more: &str) -> String {
        format!("{{\"mediaType\":\"{kind}\",\"digest\":\"sha256:{}\",\"size\":{}{more}}}", self.digest, self.size)
    }
}

fn put_text(work: &Path, blobs: &Path, text: &str) -> Result<Blob, String> {
    let file = work.join("text");
    write(&file, text)?;
    put_blob(&file, blobs)
}

/// Moves a file to where it is found by its hash.
fn put_blob(file: &Path, blobs: &Path) -> Result<Blob, String> {
    let said = said(Command::new("sha256sum").arg("-b").arg(file))?;
    let digest = said.split_whitespace().next().unwrap_or_default().to_owned();
    let size = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    fs::rename(file, blobs.join(&digest)).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Blob { digest, size })
}

/// How it is run: everybody signs in, since it listens for others than itself.
fn config(machine: &str, layer: &str) -> String {
    format!(
        "{{\"architecture\":\"{machine}\",\"os\":\"linux\",\"config\":{{\"User\":\"{USER}:{USER}\",\"WorkingDir\":\"/data\",\
         \"Entrypoint\":[\"/usr/bin/turnwright\"],\"Cmd\":[\"serve\"],\"ExposedPorts\":{{\"8700/tcp\":{{}}}},\
         \"Volumes\":{{\"/data\":{{}}}},\"Env\":[\"PATH=/usr/bin\",\"HOME=/data\",\"TURNWRIGHT_DATA_DIR=/data\",\
         \"TURNWRIGHT_SERVER_LISTEN=0.0.0.0:8700\",\"TURNWRIGHT_SERVER_AUTH=tokens\"],\
         \"StopSignal\":\"SIGTERM\"}},\"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[\"sha256:{layer}\"]}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deployed_names_the_image_that_is_made() {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
        for file in ["compose.yaml", "kubernetes/turnwright.yaml"] {
            let text = fs::read_to_string(deploy.join(file)).unwrap();
            let after = text.split("turnwright:").skip(1).filter_map(|rest| rest.split_whitespace().next());
            let versions: Vec<&str> = after.filter(|word| word.starts_with(|first: char| first.is_ascii_digit())).collect();
            assert_eq!(versions, [VERSION], "{file}");
            assert!(!text.contains(":latest"), "{file}");
        }
    }
}
