//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::components::Component;
use crate::content::version::OpenShiftVersion;

const AFTER_HELP: &str = "\
Environment:
  XDG_STATE_HOME       state is kept in $XDG_STATE_HOME/picoshift (~/.local/state/picoshift)
  XDG_CACHE_HOME       programs that were built are kept in $XDG_CACHE_HOME/picoshift (~/.cache/picoshift)
  KUBEBUILDER_ASSETS   a directory with etcd, kube-apiserver … to use instead of building them
  KUBECONFIG           its first entry is the file that gets the context `picoshift` (~/.kube/config)
  NO_COLOR             no colours, on a terminal either

Exit codes:
  0  done
  1  failed; the reason and a remedy are on standard error
  2  the command line is wrong
  3  status: a component is not running or not healthy";

/// An OpenShift-like control plane on this machine: upstream Kubernetes, and picoshift's API server beside it.
#[derive(Debug, Parser)]
#[command(name = "picoshift", version, about, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Directory of certificates, data, logs and kubeconfigs [default: $XDG_STATE_HOME/picoshift]
    #[arg(long, global = true, env = "PICOSHIFT_STATE_DIR", value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start what is not running yet, and wait until it is ready
    #[command(after_help = "\
Running it again starts only what is missing and restarts only what was started with other settings.
When a component fails, the others are left running: `picoshift up` goes on from there, `picoshift down` ends them.")]
    Up(UpArgs),
    /// Stop what `up` started; data is kept
    Down {
        /// Remove certificates, data and logs too
        #[arg(long)]
        purge: bool,
    },
    /// Say what is running
    Status {
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Print the components' logs
    Logs {
        /// Only this component's, without a prefix
        component: Option<Component>,
        /// Go on printing what is added
        #[arg(short, long)]
        follow: bool,
        /// Start with this many lines of each [default: all of one component, 20 of each of several]
        #[arg(long, value_name = "LINES")]
        tail: Option<usize>,
    },
    /// Log in as a user, and make a context of it in the user's kubeconfig
    Login(LoginArgs),
    /// Add, list and delete users
    #[command(subcommand)]
    User(UserCommand),
    /// Print the administrator's kubeconfig
    Kubeconfig {
        /// Print where it is instead
        #[arg(long)]
        path: bool,
    },
    /// Remove what is picoshift's from a cluster, and nothing else; it refuses to run against a real OpenShift
    #[command(after_help = "\
Objects labelled app.kubernetes.io/managed-by=picoshift go. A Namespace or a definition of ours that somebody else has objects in
stays, and is named. `picoshift down --purge` ends a control plane of this machine instead.")]
    Uninstall(UninstallArgs),
    /// Find or build the programs, without starting anything
    Build,
    /// Print the versions of picoshift and of what it runs
    Version,
    /// Print a completion script
    Completion {
        /// The shell that is to read it
        shell: clap_complete::Shell,
    },
}

/// Options of `up`.
#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    /// Domain of the hosts that Routes get; names below `.localhost` need no DNS in browsers and curl
    /// [default: the one of the last `up`, at first apps.picoshift.localhost]
    #[arg(long, env = "PICOSHIFT_INGRESS_DOMAIN", value_name = "DOMAIN")]
    pub(crate) ingress_domain: Option<String>,
    /// The version of OpenShift that the cluster says it is, and whose kinds it has: 4.16 to 4.21
    /// [default: as at the last `up`, at first the newest]
    #[arg(long, env = "PICOSHIFT_OPENSHIFT_VERSION", value_name = "VERSION")]
    pub(crate) openshift_version: Option<OpenShiftVersion>,
    /// Whether requests for OpenShift's groups go straight to our API server, or all through kube-apiserver
    /// [default: as at the last `up`, at first on]
    #[arg(long, env = "PICOSHIFT_DIRECT_GROUPS", value_name = "on|off")]
    pub(crate) direct_groups: Option<Switch>,
    /// Do not touch the user's kubeconfig
    #[arg(long)]
    pub(crate) no_kubeconfig: bool,
}

/// Options of `uninstall`.
#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    /// The kubeconfig that names the cluster [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of it [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A choice of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Switch {
    /// Yes
    #[default]
    On,
    /// No
    Off,
}

/// Options of `login`.
#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// Who logs in; without it you are asked
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) password: PasswordArgs,
}

/// Where a password comes from; without either you are asked.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct PasswordArgs {
    /// The password; others on this machine can read it in the list of processes
    #[arg(long)]
    pub(crate) password: Option<String>,
    /// Read the password from standard input
    #[arg(long)]
    pub(crate) password_stdin: bool,
}

/// What `user` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user who can log in
    Add {
        /// The name to log in with
        name: String,
        #[command(flatten)]
        password: PasswordArgs,
        /// Group that gets the user; may be repeated
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// Make the user cluster-admin
        #[arg(long)]
        cluster_admin: bool,
        /// Change the password of a user who is there
        #[arg(long)]
        replace: bool,
    },
    /// List who can log in
    List {
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Delete a user, with everything that logging in left
    Delete {
        /// The name
        name: String,
    },
}

/// How `status` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table for people
    #[default]
    Text,
    /// One JSON object for programs
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn components_are_named_as_their_programs() {
        let args = Args::try_parse_from(["picoshift", "logs", "kube-apiserver", "-f"]).unwrap();
        let Command::Logs { component, follow, .. } = args.command else {
            panic!("not logs");
        };
        assert_eq!(component, Some(Component::KubeApiserver));
        assert!(follow);
    }
}
