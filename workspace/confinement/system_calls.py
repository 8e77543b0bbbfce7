"""The system calls that matter here, by number, and which of them a command may not make.

Numbers are those of x86_64 and aarch64, from the kernel's tables; None where a processor has no such call.
"""

import platform
from collections.abc import Mapping

_MACHINES = ("x86_64", "aarch64")
_MACHINE = platform.machine()
IS_SUPPORTED = _MACHINE in _MACHINES
AUDIT_ARCHITECTURE = 0xC000003E if _MACHINE == "x86_64" else 0xC00000B7
Numbers = tuple[int | None, int | None]

# These reach other processes' memory and descriptors or change the machine, or have often had faults in kernels.
REJECTED: Mapping[str, Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    # The machine, or the whole account, has a fixed number of these.
    "io_setup": (206, 0),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "statmount": (457, 457),
    "listmount": (458, 458),
}
# Without namespaces these reach what belongs to the same account, and Landlock does not restrict them.
REJECTED_WITHOUT_NAMESPACES: Mapping[str, Numbers] = {
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "file_setattr": (469, 469),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "bind": (49, 200),
    "connect": (42, 203),
    "ioprio_set": (251, 30),
}
# The same holds for these. Programs such as cp -p continue if a file system has no extended attributes.
EXTENDED_ATTRIBUTES: Mapping[str, Numbers] = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
# These can change any process of the account. A process may change itself, which is an argument of 0. The rows have the
# numbers and the allowed values of arguments.
ONLY_OF_ONESELF: Mapping[str, tuple[Numbers, Mapping[int, tuple[int, ...]]]] = {
    "prlimit64": ((302, 261), {0: (0,)}),
    "sched_setaffinity": ((203, 122), {0: (0,)}),
    "sched_setscheduler": ((144, 119), {0: (0,)}),
    "sched_setparam": ((142, 118), {0: (0,)}),
    "sched_setattr": ((314, 274), {0: (0,)}),
    "setpriority": ((141, 140), {0: (0, 1), 1: (0,)}),  # a process or a group, but not an account
}
# For versions of Landlock without signals: a process may signal only its own group.
SIGNALS: Mapping[str, Numbers] = {
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
# The launcher ends a command by its process groups. During that time it does not answer these calls, so that no process
# changes its group.
CHANGE_GROUP: Mapping[str, Numbers] = {"setpgid": (109, 154), "setsid": (112, 157)}
# Others could run a setuid file in a directory of the user, and would become the user. The rows have the numbers, the
# argument with the mode and, if a call does not always create a file, the argument with the flags.
CREATE_FILE: Mapping[str, tuple[Numbers, int, int | None]] = {
    "open": ((2, None), 2, 1),
    "openat": ((257, 56), 3, 2),
    "creat": ((85, None), 1, None),
    "mknod": ((133, None), 1, None),
    "mknodat": ((259, 33), 2, None),
}
CREATES = 0x40 | 0x400000  # O_CREAT, O_TMPFILE
OPENAT2 = (437, 437)
# Landlock does not restrict these, but programs need them, so the launcher makes these calls within the folder. The
# rows have the numbers and the argument with the mode.
CHANGE_MODE: Mapping[str, tuple[Numbers, int]] = {
    "chmod": ((90, None), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
}
CHANGE_TIMES = (280, 88)  # utimensat
KILL = (62, 129)
FCNTL = (72, 25)
SIGNAL_BY_DESCRIPTOR = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
LEASE_OR_WATCH = (1024, 1026)  # F_SETLEASE, F_NOTIFY
IOCTL = (16, 29)
# FS_IOC_SETFLAGS, of 64 and 32 bits, FS_IOC_SETVERSION, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY and
# FS_IOC_SET_ENCRYPTION_POLICY
CHANGE_FILE_BY_IOCTL = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613)
OWNER_OF_DESCRIPTOR = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP
SOCKET = (41, 198)
SOCKETPAIR = (53, 199)
CLONE = (56, 220)
CLONE3 = (435, 435)
TRUNCATE = (76, 45)
EPOLL_CTL = (233, 21)
EPOLL_CTL_ADD = 1
FALLOCATE = (285, 47)
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE, which frees blocks


def get_number(numbers: Numbers) -> int | None:
    """Returns the number on this processor, which must be supported."""
    return numbers[_MACHINES.index(_MACHINE)]
