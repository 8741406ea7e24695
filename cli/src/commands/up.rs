//! `up`: starts what is missing, and waits until all of it is ready.

mod content;

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{lock_state, say};
use crate::apply;
use crate::args::UpArgs;
use crate::binaries::{Binaries, Program};
use crate::components::{self, Component, Plan, write_authorization_config};
use crate::content::Content;
use crate::content::facts::Installed;
use crate::failure::Failure;
use crate::guard;
use crate::health::client_for;
use crate::kubeconfig::{self, Access, NAME, user_file};
use crate::manifests;
use crate::paths::Paths;
use crate::pki;
use crate::ports::Chooser;
use crate::progress::{Progress, elapsed};
use crate::settings::{INGRESS_DOMAIN, Settings};
use crate::supervisor::{self, EndedMeanwhile, Running, Started};
use crate::users::directory::Directory;
use crate::users::{kubeadmin, seed};

/// How long the registered APIs may take to be served once all components are healthy.
const AVAILABLE_WITHIN: Duration = Duration::from_secs(60);

/// Runs `up`.
pub(crate) async fn run(paths: &Paths, args: UpArgs) -> Result<()> {
    let start = Instant::now();
    let progress = Progress::new();
    paths.create_state()?;
    let _lock = lock_state(paths, &progress).await?;
    // Before minutes are spent on building.
    components::installed()?;
    let binaries = Binaries::ensure(paths, &progress).await?;
    let (settings, kubeadmin) = converge(paths, &progress, &binaries, &args).await?;
    if !args.no_kubeconfig {
        merge_kubeconfig(paths, settings.clone(), &progress).await?;
    }
    let kubectl = binaries.get(Program::Kubectl)?;
    let said = farewell(paths, &settings, &kubectl.path, start.elapsed(), !args.no_kubeconfig);
    say(&said)?;
    match kubeadmin {
        Some(password) => say(&format!("\nThe password of kubeadmin, told only now: {password}\n")),
        None => Ok(()),
    }
}

/// Starts what is missing. What ends while it does, having run before, is missing too.
async fn converge(
    paths: &Paths,
    progress: &Progress,
    binaries: &Binaries,
    args: &UpArgs,
) -> Result<(Settings, Option<String>)> {
    let mut ended = Vec::new();
    loop {
        let (settings, chooser) = prepare(paths, args).await?;
        let up = Up { paths, progress, settings: &settings, binaries, ports: RefCell::new(chooser) };
        let err = match up.start().await {
            // What it noted is in the file.
            Ok(kubeadmin) => return Ok((Settings::load(paths)?, kubeadmin)),
            Err(err) => err,
        };
        match err.downcast_ref::<EndedMeanwhile>() {
            // Once each: what we started ourselves and ends is a failure.
            Some(meanwhile) if !ended.contains(meanwhile) => {
                progress.say(&format!("{meanwhile}: starting again"));
                ended.push(*meanwhile);
            }
            _ => return Err(err),
        }
    }
}

/// Ports, certificates and configuration: everything that must be there before anything starts.
async fn prepare(paths: &Paths, args: &UpArgs) -> Result<(Settings, Chooser)> {
    let mut settings = Settings::load(paths)?;
    let mut chooser = Chooser::default();
    let mut wanted = Vec::new();
    for component in Component::ALL {
        let runs = Started::load_running(component, paths)?.is_some();
        if !runs {
            supervisor::end_marked(component, paths).await?;
        }
        wanted.push((component.name(), component.usual_port(), runs));
        wanted.extend(component.other_ports().iter().map(|(name, usual)| (*name, *usual, runs)));
    }
    // First those in use, so that no other component is given one of them.
    wanted.sort_by_key(|(_, _, runs)| !runs);
    for (name, usual, runs) in wanted {
        let recorded = settings.ports.get(name).copied();
        let port = match recorded {
            Some(port) if runs => chooser.keep(port),
            _ => chooser.choose(recorded, usual)?,
        };
        settings.ports.insert(name.to_owned(), port);
    }
    settings.direct_groups = args.direct_groups.or(settings.direct_groups);
    settings.ingress_domain =
        args.ingress_domain.clone().or(settings.ingress_domain).or_else(|| Some(INGRESS_DOMAIN.to_owned()));
    settings.openshift = Some(Installed::next(settings.openshift, args.openshift_version)?);
    settings.save(paths)?;
    pki::ensure(paths)?;
    kubeconfig::write_all(paths, &settings)?;
    write_authorization_config(paths)?;
    Ok((settings, chooser))
}

struct Up<'a> {
    paths: &'a Paths,
    progress: &'a Progress,
    settings: &'a Settings,
    binaries: &'a Binaries,
    ports: RefCell<Chooser>,
}

impl Up<'_> {
    /// Starts the components, each as soon as what it needs is ready. Those that need kube-apiserver begin after it: earlier they
    /// would only take processor time from it. Returns the password of kube:admin when it was made now.
    async fn start(&self) -> Result<Option<String>> {
        let plans =
            Component::ALL.map(|component| Plan::new(component, self.paths, self.settings, self.binaries));
        let [etcd, kube_apiserver, shim, picoshift_apiserver, ours, controller_manager, scheduler] = plans;
        let (etcd, kube_apiserver, shim) = (etcd?, kube_apiserver?, shim?);
        let (picoshift_apiserver, ours) = (picoshift_apiserver?, ours?);
        let (controller_manager, scheduler) = (controller_manager?, scheduler?);

        let etcd = self.bring_up(&etcd).await?;
        let kube_apiserver = self.bring_up(&kube_apiserver).await?;
        let everything_else = async {
            let client =
                client_for(self.port(Component::KubeApiserver)?, "cluster-ca", Some("admin"), self.paths)?;
            let objects = manifests::objects(self.paths, self.port(Component::PicoshiftApiserver)?)?;
            let (apis, roles): (Vec<Value>, Vec<Value>) =
                objects.into_iter().partition(|object| object["kind"] == "APIService");
            let content = Content::new(&self.facts()?, &apis)?;
            // Our programs need their roles to become ready.
            guard::ours_or_nobodys(&client).await?;
            let granted = apply::apply(&client, &roles).await?;
            // Its groups are registered only when our server is ready: kube-apiserver would log what it cannot reach.
            let reached = Notify::new();
            let served = async {
                let server = self.bring_up(&picoshift_apiserver).await?;
                self.register(&client, &apis, granted, server, &reached).await
            };
            let through_the_shim = async {
                let shim = self.bring_up(&shim).await?;
                // A second after a group is registered kube-apiserver asks for its schema. By then it has to have found out that
                // it reaches the group, and these would take it the processor.
                reached.notified().await;
                let others = tokio::try_join!(
                    self.content(&client, &content, &ours),
                    self.bring_up(&controller_manager),
                    self.bring_up(&scheduler)
                );
                others.map(|(ours, controllers, scheduler)| (shim, ours, controllers, scheduler))
            };
            let (server, (shim, ours, mut controllers, scheduler)) =
                tokio::try_join!(served, through_the_shim)?;
            self.await_roles(&client, &mut controllers).await?;
            let told = self.users(&client).await?;
            Ok::<_, anyhow::Error>((told, [shim, server, ours, controllers, scheduler]))
        };
        // Whatever else is under way, the end of what it all needs is told first.
        let (mut etcd, mut kube_apiserver) = (etcd, kube_apiserver);
        let (told, others) = tokio::select! {
            biased;
            err = etcd.failed(self.paths) => return Err(err),
            err = kube_apiserver.failed(self.paths) => return Err(err),
            done = everything_else => done?,
        };
        if ![etcd, kube_apiserver].iter().chain(&others).any(|running| running.fresh) {
            self.progress.say("everything was running already");
        }
        Ok(told)
    }

    /// Makes what a new cluster has of users. Returns the password of kube:admin when it was made now.
    async fn users(&self, client: &Client) -> Result<Option<String>> {
        if self.settings.has_users {
            return Ok(None);
        }
        let step = self.progress.step("users");
        let made = seed::ensure(&Directory::new(client.clone())).await?;
        apply::create_missing(client, &manifests::oauth()?).await?;
        let password = kubeadmin::ensure(client).await?;
        Settings { has_users: true, ..self.settings.clone() }.save(self.paths)?;
        step.done_with(&match made {
            0 => "nothing to change".to_owned(),
            made => format!("{made} made"),
        });
        Ok(password)
    }

    fn port(&self, component: Component) -> Result<u16> {
        self.settings.port(component).context("a port was not chosen")
    }

    async fn bring_up(&self, plan: &Plan) -> Result<Running> {
        let name = plan.component.name();
        let step = self.progress.step(name);
        self.ports.borrow_mut().release(plan.port);
        for (other, _) in plan.component.other_ports() {
            self.settings.ports.get(*other).iter().for_each(|port| self.ports.borrow_mut().release(**port));
        }
        let mut running = supervisor::ensure(plan, self.paths).await?;
        running.ready(self.paths, plan.port).await?;
        let fresh = if running.fresh { "" } else { ", was running" };
        step.done_with(&format!("{} on port {}{fresh}", plan.version, plan.port));
        Ok(running)
    }

    /// Registers the API groups, and waits until they are served; tells when kube-apiserver reaches them.
    async fn register(
        &self,
        client: &Client,
        objects: &[Value],
        granted: usize,
        mut server: Running,
        reached: &Notify,
    ) -> Result<Running> {
        let step = self.progress.step("OpenShift APIs and roles");
        let registered = async {
            let changed = apply::apply(client, objects).await?;
            let served = async {
                apply::await_available(client, objects).await?;
                apply::await_discovered(client, objects).await?;
                reached.notify_one();
                let (kept, once) = manifests::sccs()?;
                let made = apply::create_missing(client, &once).await?;
                Ok::<_, anyhow::Error>(made + apply::apply(client, &kept).await?)
            };
            match tokio::time::timeout(AVAILABLE_WITHIN, served).await {
                Ok(done) => done.map(|made| changed + made),
                Err(_) => Err(unavailable(client, objects).await.into()),
            }
        };
        let changed = tokio::select! {
            biased;
            err = server.failed(self.paths) => return Err(err),
            changed = registered => changed?,
        };
        step.done_with(&written(granted + changed));
        Ok(server)
    }

    /// Waits until the roles admin, edit, view and basic-user have our rules.
    async fn await_roles(&self, client: &Client, controllers: &mut Running) -> Result<()> {
        let _step = self.progress.step("roles");
        tokio::select! {
            biased;
            err = controllers.failed(self.paths) => Err(err),
            done = tokio::time::timeout(AVAILABLE_WITHIN, apply::await_aggregated(client)) => {
                done.unwrap_or_else(|_| Err(roles_not_aggregated().into()))
            }
        }
    }
}

fn written(count: usize) -> String {
    match count {
        0 => "nothing to change".to_owned(),
        count => format!("{count} objects written"),
    }
}

fn roles_not_aggregated() -> Failure {
    Failure::new(
        format!(
            "kube-controller-manager has not put our rules into the role admin after {}",
            elapsed(AVAILABLE_WITHIN)
        ),
        "see `picoshift logs kube-controller-manager`, then `picoshift up` again",
    )
}

async fn unavailable(client: &Client, objects: &[Value]) -> Failure {
    let reasons: String =
        apply::unavailable(client, objects).await.iter().map(|reason| format!("\n  {reason}")).collect();
    Failure::new(
        format!(
            "kube-apiserver does not reach picoshift-apiserver after {}:{reasons}",
            elapsed(AVAILABLE_WITHIN)
        ),
        "see `picoshift logs picoshift-apiserver`, then `picoshift up` again",
    )
}

async fn merge_kubeconfig(paths: &Paths, mut settings: Settings, progress: &Progress) -> Result<()> {
    let path = user_file::default_path().ok_or_else(|| {
        Failure::new("there is no home directory for a kubeconfig", "set KUBECONFIG, or use --no-kubeconfig")
    })?;
    let port = settings.port(Component::PicoshiftShim).context("a port was not chosen")?;
    let access = Access::new(&format!("https://127.0.0.1:{port}"), "admin", paths)?;
    let step = progress.step(&format!("context {NAME} in {}", path.display()));
    if let Some(before) = settings.kubeconfig.as_ref().filter(|before| before.path != path) {
        // An earlier `up` wrote to another file.
        user_file::remove(before, &access.cluster).await?;
    }
    settings.kubeconfig = Some(user_file::merge(&path, NAME, &access, settings.kubeconfig.as_ref()).await?);
    settings.save(paths)?;
    step.done();
    Ok(())
}

fn farewell(
    paths: &Paths,
    settings: &Settings,
    kubectl: &std::path::Path,
    took: Duration,
    merged: bool,
) -> String {
    let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join("kubectl").is_file());
    let kubectl = if on_path { "kubectl".to_owned() } else { kubectl.display().to_string() };
    let kubeconfig = match merged {
        true => String::new(),
        false => format!("  export KUBECONFIG={}\n", paths.kubeconfig("admin").display()),
    };
    let api = settings.port(Component::PicoshiftShim).map(|port| format!("https://127.0.0.1:{port}"));
    let api = api.unwrap_or_default();
    let domain = settings.ingress_domain.as_deref().unwrap_or(INGRESS_DOMAIN);
    format!(
        "\npicoshift is ready after {}. Routes get hosts below {domain}. Next:\n{kubeconfig}  {kubectl} get projects\n  \
         picoshift login user1 --password user1     (also admin, developer; or: oc login -u user1 -p user1 {api})\n  \
         picoshift status\n  picoshift down\n",
        elapsed(took)
    )
}
