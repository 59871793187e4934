//! Which calls of the kernel a confined command may not make.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::plan::Sockets;

/// Calls that manage the machine, look into other processes or undo the confinement.
const CLOSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// New name spaces, asked for while a process is made.
const NAME_SPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Typing into the terminal of others.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// On `x86_64` every call has a second number, of the `x32` form.
#[cfg(target_arch = "x86_64")]
const FORMS: &[i64] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const FORMS: &[i64] = &[0];

/// Closes these calls for this process and all that it starts.
pub(super) fn close(sockets: Sockets) -> io::Result<()> {
    for program in programs(sockets).map_err(io::Error::other)? {
        seccompiler::apply_filter_all_threads(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn programs(sockets: Sockets) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(seccompiler::Error::Backend)?;
    let refused = program(rules(sockets)?, libc::EPERM, arch)?;
    // Its flags are behind a pointer; libraries fall back to the form whose flags can be seen.
    let unknown = program(every_form([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS, arch)?;
    Ok(vec![refused, unknown])
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn every_form(rules: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>) -> Rules {
    let forms = |(number, rules): (i64, Vec<SeccompRule>)| FORMS.iter().map(move |form| (number | form, rules.clone()));
    rules.into_iter().flat_map(forms).collect()
}

fn program(rules: Rules, error: i32, arch: TargetArch) -> Result<BpfProgram, seccompiler::Error> {
    let action = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?;
    Ok(BpfProgram::try_from(filter)?)
}

fn rules(sockets: Sockets) -> Result<Rules, seccompiler::Error> {
    let mut rules: Vec<(i64, Vec<SeccompRule>)> = CLOSED.iter().map(|number| (*number, Vec::new())).collect();
    let spaces = NAME_SPACES.iter().map(|flag| u64::from(flag.unsigned_abs()));
    let spaces = spaces.map(|flag| one(0, SeccompCmpOp::MaskedEq(flag), flag)).collect::<Result<Vec<_>, _>>()?;
    rules.push((libc::SYS_clone, spaces));
    let typing = TYPING.iter().map(|request| one(1, SeccompCmpOp::Eq, *request)).collect::<Result<Vec<_>, _>>()?;
    rules.push((libc::SYS_ioctl, typing));
    match sockets {
        Sockets::None => rules.push((libc::SYS_socket, Vec::new())),
        Sockets::All => {
            let odd = [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG].map(|kind| one(0, SeccompCmpOp::Eq, family(kind)));
            rules.push((libc::SYS_socket, odd.into_iter().collect::<Result<Vec<_>, _>>()?));
        }
    }
    Ok(every_form(rules))
}

fn family(family: i32) -> u64 {
    u64::from(family.unsigned_abs())
}

fn one(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}
