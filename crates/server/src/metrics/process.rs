//! The process itself, by the names that Prometheus gives to every process. Linux alone tells it (`/proc/self`).

use std::fmt::Write as _;
use std::fs;

/// Clock ticks a second: Linux has told programs 100 on every architecture since 2.6.
const TICKS: f64 = 100.0;

/// Writes what the system tells; nothing where it tells nothing.
pub(super) fn tell(text: &mut String) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may hold anything and ends with the last bracket.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok());
    if let (Some(user), Some(system)) = (field(11), field(12)) {
        let ticks = u32::try_from(user.saturating_add(system)).unwrap_or(u32::MAX);
        metric(
            text,
            "process_cpu_seconds",
            "counter",
            "User and system time",
            &(f64::from(ticks) / TICKS).to_string(),
            "_total",
        );
    }
    if let Some(threads) = field(17) {
        metric(text, "process_threads", "gauge", "Threads", &threads.to_string(), "");
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok());
    if let Some(resident) = kib("VmRSS:") {
        metric(text, "process_resident_memory_bytes", "gauge", "Memory in RAM", &resident.saturating_mul(1024).to_string(), "");
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        metric(text, "process_open_fds", "gauge", "Open file descriptors", &open.count().to_string(), "");
    }
}

fn metric(text: &mut String, name: &str, kind: &str, help: &str, value: &str, suffix: &str) {
    let _ = write!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{suffix} {value}\n");
}
