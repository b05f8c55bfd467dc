//! The settings of the group `access`.

use crate::settings::setting::{ConfigName, Setting};
use crate::settings::setting_type::SettingType;

pub(super) const ACCESS: &[Setting] = &[
    Setting {
        name: "password",
        value_name: "TEXT",
        default: "",
        help: "The password that clients need; in the file or the environment only",
        more: "There is no flag, since all users of a machine can read command lines. See \
               --password-file. A settings file with a password should be readable by its owner \
               only.",
        value_type: SettingType::Secret(|all| &mut all.password),
        config_name: ConfigName::Changeable("requirepass"),
    },
    Setting {
        name: "password-file",
        value_name: "FILE",
        default: "",
        help: "A file whose only line is the password that clients need",
        more: "",
        value_type: SettingType::Path(|all| &mut all.password_file),
        config_name: ConfigName::None,
    },
    Setting {
        name: "users",
        value_name: "FILE",
        default: "",
        help: "A file of users, their passwords, commands and keys, as `user` lines of Redis's ACL",
        more: "A client that has not logged in is the user `default`; `user default off` makes \
               clients log in. Cannot be combined with `password` or --password-file.",
        value_type: SettingType::Path(|all| &mut all.users),
        config_name: ConfigName::ReadOnly("aclfile"),
    },
    Setting {
        name: "insecure",
        value_name: "BOOL",
        default: "false",
        help: "Listen beyond this machine without a password",
        more: "Without it such an address is refused, unless clients must log in or, with \
               --tls-client-ca, present a certificate.",
        value_type: SettingType::Bool(|all| &mut all.insecure),
        config_name: ConfigName::None,
    },
    Setting {
        name: "enable-debug-command",
        value_name: "WHO",
        default: "no",
        help: "Who may use DEBUG, which can stall and inspect a server; for tests of clients",
        more: "DEBUG SLEEP blocks a worker thread and all of its connections.",
        value_type: SettingType::Choice {
            field: |all| &mut all.enable_debug_command,
            choices: &[
                ("no", "no client"),
                ("local", "clients on this machine"),
                ("yes", "all clients"),
            ],
        },
        config_name: ConfigName::ReadOnly("enable-debug-command"),
    },
    Setting {
        name: "tls-cert",
        value_name: "FILE",
        default: "",
        help: "The server's certificate and its chain in PEM, for addresses with tls:",
        more: "",
        value_type: SettingType::Path(|all| &mut all.tls_cert),
        config_name: ConfigName::ReadOnly("tls-cert-file"),
    },
    Setting {
        name: "tls-key",
        value_name: "FILE",
        default: "",
        help: "The private key of that certificate, in PEM",
        more: "",
        value_type: SettingType::Path(|all| &mut all.tls_key),
        config_name: ConfigName::ReadOnly("tls-key-file"),
    },
    Setting {
        name: "tls-client-ca",
        value_name: "FILE",
        default: "",
        help: "CA certificates in PEM; TLS clients must then present a certificate issued by one \
               of them",
        more: "",
        value_type: SettingType::Path(|all| &mut all.tls_client_ca),
        config_name: ConfigName::ReadOnly("tls-ca-cert-file"),
    },
];
